/* SPDX-License-Identifier: MIT */
/* tidepool top: a terminal that shows a process's pools and sites, and goes on doing so. */
#define _GNU_SOURCE
#include <curses.h>
#include <locale.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "profiler/tool/client.h"
#include "profiler/tool/screen.h"
#include "profiler/tool/tool.h"
#include "runtime/base/assert.h"

enum {
    PERIOD_MS = 1000,
    PERIOD_LEAST = 125,
    PERIOD_MOST = 16000,
    SLICE_MS = 100,   /* keys are looked at so often while an answer is awaited    */
    SILENT_MS = 1000, /* from then on the screen says that it does not come        */
    AGAIN_MS = 250    /* until a process is connected to again that has broken off */
};

typedef struct top_state {
    tool_client client; /* closed: its process has broken off */
    const tool_options *options;
    tool_screen screen;
    json_t *facts, *before; /* the last and the one before it, or NULL */
    int64_t asked_ms;       /* when the answer that is awaited was asked for; 0: none is */
    int period_ms;
    bool over;
} top_state;

static int64_t top_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 + 1;
}

static void top_put(int row, tool_screen_look look, const char *line)
{
    attr_t how = look == TOOL_LOOK_TITLE ? A_BOLD : look == TOOL_LOOK_HEAD ? A_REVERSE : A_NORMAL;
    tide_assert(row >= 0);
    attrset(how);
    mvaddstr(row, 0, line);
    if (look == TOOL_LOOK_HEAD)
        mvchgat(row, 0, -1, A_REVERSE, 0, NULL);
    attrset(A_NORMAL);
}

static void top_draw(top_state *top)
{
    getmaxyx(stdscr, top->screen.rows, top->screen.columns);
    erase();
    tool_screen_draw(&top->screen, top->facts, top_put);
    refresh();
}

static void top_keep(top_state *top, json_t *facts)
{
    json_decref(top->before);
    top->before = facts != NULL ? top->facts : NULL;
    if (facts == NULL)
        json_decref(top->facts);
    top->facts = facts;
    top->screen.before = top->before;
    top->asked_ms = 0;
    top->screen.notice[0] = '\0';
}

/* Shows that one; false: it cannot be asked, and all is as before. */
static bool top_show_process(top_state *top, pid_t pid)
{
    tool_client other;
    if (tool_client_open(&other, pid, top->options->folder, SLICE_MS) != TOOL_OK)
        return false;
    tool_client_close(&top->client);
    top->client = other;
    top->screen.first = 0;
    top_keep(top, NULL);
    return true;
}

/* To the next one in the folder that can be asked, from the last on to the first. Names of the dead
 * stay there until another process begins to listen. */
static void top_change_process(top_state *top)
{
    pid_t *list, shown = top->client.pid;
    size_t count = tool_folder_list(top->options->folder, &list), after = 0;
    while (after < count && list[after] <= shown)
        after++;
    for (size_t i = 0; i < count; i++) {
        pid_t next = list[(after + i) % count];
        if (next == shown || top_show_process(top, next))
            break;
    }
    free(list);
}

static void top_take_key(top_state *top, int key)
{
    tool_screen *screen = &top->screen;
    switch (key) {
    case 'q':
    case 3: top->over = true; break;
    case 's': screen->sort = (screen->sort + 1) % TOOL_SORTS; break;
    case 'r': screen->reversed = !screen->reversed; break;
    case 'n': top_change_process(top); break;
    case KEY_DOWN:
    case 'j': screen->first++; break;
    case KEY_UP:
    case 'k': screen->first -= screen->first > 0; break;
    case KEY_HOME: screen->first = 0; break;
    case '+':
        top->period_ms = top->period_ms > PERIOD_LEAST ? top->period_ms / 2 : PERIOD_LEAST;
        break;
    case '-':
        top->period_ms = top->period_ms < PERIOD_MOST ? top->period_ms * 2 : PERIOD_MOST;
        break;
    default: break;
    }
}

/* ---- a process that answers, or does not ---------------------------------------------------- */

static int top_reopen(top_state *top)
{
    pid_t pid = top->client.pid;
    top->asked_ms = 0;
    return tool_client_open(&top->client, pid, top->options->folder, SLICE_MS);
}

/* Asks unless that was done, and waits for a moment. TOOL_NO: the answer is still to come. */
static int top_ask(top_state *top)
{
    json_t *facts;
    int code = top->client.socket < 0 ? top_reopen(top) : TOOL_OK;
    if (code == TOOL_OK && top->asked_ms == 0) {
        code = tool_client_facts_ask(&top->client);
        top->asked_ms = top_now_ms();
    }
    if (code == TOOL_OK)
        code = tool_client_facts_take(&top->client, SLICE_MS, &facts);
    if (code == TOOL_OK)
        top_keep(top, facts);
    return code;
}

/* What cannot be asked just now may be asked later: another program is being executed, or too many
 * look. A process that has ended will not. */
static int top_say_silence(top_state *top, int code)
{
    int64_t silent_ms = top_now_ms() - top->asked_ms;
    tool_screen *screen = &top->screen;
    if (code == TOOL_NO && silent_ms >= SILENT_MS)
        snprintf(screen->notice, sizeof screen->notice,
                 "process %d has not answered for %d s; n: another one, q: quit",
                 (int)top->client.pid, (int)(silent_ms / 1000));
    if (code == TOOL_NO)
        return TOOL_OK;
    tool_client_close(&top->client); /* its error stays */
    snprintf(screen->notice, sizeof screen->notice, "%.110s; it is asked again", top->client.error);
    if (!tool_process_ended(top->client.pid))
        return TOOL_OK;
    snprintf(top->client.error, sizeof top->client.error, "process %d has ended",
             (int)top->client.pid);
    return TOOL_BROKEN;
}

/* Until the user leaves, or the process ends. */
static int top_run(top_state *top)
{
    int code = TOOL_OK;
    while (!top->over && code == TOOL_OK) {
        code = top_ask(top);
        int wait = code == TOOL_OK ? top->period_ms : code == TOOL_NO ? 0 : AGAIN_MS;
        if (code != TOOL_OK)
            code = top_say_silence(top, code);
        top_draw(top);
        timeout(wait);
        int key = code == TOOL_OK ? getch() : ERR;
        if (key != ERR)
            top_take_key(top, key);
    }
    return code;
}

static int top_begin_terminal(SCREEN **terminal)
{
    const char *name = getenv("TERM");
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
        return tool_complain(TOOL_USAGE, "top wants a terminal; `tidepool pools` and `tidepool "
                                         "sites` print, also --json");
    (void)setlocale(LC_CTYPE, ""); /* numbers are written as everywhere */
    *terminal = newterm(name, stdout, stdin);
    if (*terminal == NULL)
        return tool_complain(TOOL_USAGE, "top knows no terminal '%.40s' (TERM)",
                             name != NULL ? name : "");
    (void)cbreak();
    (void)noecho();
    (void)keypad(stdscr, TRUE);
    (void)curs_set(0);
    return TOOL_OK;
}

/* The process that was named, or the first that listens. */
static int top_open(top_state *top, int count, char **args)
{
    if (count > 1)
        return tool_client_open_named(&top->client, args[1], top->options);
    pid_t *list;
    size_t pids = tool_folder_list(top->options->folder, &list);
    int code = TOOL_NOBODY;
    for (size_t i = 0; i < pids && code != TOOL_OK; i++)
        code =
            tool_client_open(&top->client, list[i], top->options->folder, top->options->timeout_ms);
    free(list);
    return code == TOOL_OK ? code : tool_complain(TOOL_NOBODY, "no process listens");
}

static int top_find_sort(const char *name)
{
    for (int i = 0; i < TOOL_SORTS; i++)
        if (strcmp(tool_screen_sort_name(i), name) == 0)
            return i;
    return -1;
}

int tool_top(int count, char **args)
{
    tool_options options;
    top_state top = {.options = &options, .period_ms = PERIOD_MS};
    SCREEN *terminal = NULL;
    int code = tool_options_read(&count, args, "tdS", 0, 1, &options);
    if (code != TOOL_OK)
        return TOOL_OPTIONS_CODE(code);
    top.screen.sort = options.sort != NULL ? top_find_sort(options.sort) : 0;
    if (top.screen.sort < 0)
        return tool_complain(TOOL_USAGE, "top sorts by load, uses, misses, use or name");
    code = top_open(&top, count, args);
    if (code != TOOL_OK)
        return code;
    code = top_begin_terminal(&terminal);
    if (code == TOOL_OK) {
        code = top_run(&top);
        (void)endwin();
        delscreen(terminal);
        if (code != TOOL_OK)
            (void)tool_client_complain(&top.client, code);
    }
    json_decref(top.facts);
    json_decref(top.before);
    tool_client_close(&top.client);
    return code;
}
