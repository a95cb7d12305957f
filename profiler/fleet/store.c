/* SPDX-License-Identifier: MIT */
/* Pushes and pulls, over one short connection each. The store is not believed: an answer that is
 * late, too long or of another kind is a failure. */
#define _GNU_SOURCE
#include "profiler/fleet/store.h"

#include <hiredis/hiredis.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/base/assert.h"

/* KEYS: texts, times. ARGV: contributor, text, most contributors, seconds until both expire. */
static const char store_push[] = "redis.call('HSET', KEYS[1], ARGV[1], ARGV[2]) "
                                 "redis.call('ZADD', KEYS[2], redis.call('TIME')[1], ARGV[1]) "
                                 "local over = redis.call('ZCARD', KEYS[2]) - tonumber(ARGV[3]) "
                                 "if over > 0 then "
                                 "  local old = redis.call('ZPOPMIN', KEYS[2], over) "
                                 "  for i = 1, #old, 2 do redis.call('HDEL', KEYS[1], old[i]) end "
                                 "end "
                                 "redis.call('EXPIRE', KEYS[1], ARGV[4]) "
                                 "redis.call('EXPIRE', KEYS[2], ARGV[4]) "
                                 "return redis.call('HLEN', KEYS[1])";

#define STORE_ANSWER_MAX ((size_t)FLEET_MEMBERS * FLEET_TEXT_MAX + ((size_t)1 << 20))

/* ---- the address -------------------------------------------------------------------------- */

static bool store_number(const char *text, int most, int *out)
{
    char *end;
    long value = strtol(text, &end, 10);
    *out = (int)value;
    return end != text && *end == '\0' && value >= 0 && value <= most;
}

/* False: it has no room. */
static bool store_copy(char *to, size_t room, const char *text, size_t length)
{
    if (length >= room)
        return false;
    memcpy(to, text, length);
    to[length] = '\0';
    return true;
}

/* What stands before the @. */
static bool store_read_user(const char *text, size_t length, fleet_url *out)
{
    const char *colon = memchr(text, ':', length);
    size_t user = colon != NULL ? (size_t)(colon - text) : 0;
    const char *password = colon != NULL ? colon + 1 : text;
    return store_copy(out->user, sizeof out->user, text, user) &&
           store_copy(out->password, sizeof out->password, password,
                      length - (size_t)(password - text));
}

bool fleet_url_read(const char *text, fleet_url *out, char error[FLEET_ERROR_MAX])
{
    static const char scheme[] = "redis://";
    char rest[400];
    *out = (fleet_url){.port = 6379};
    snprintf(error, FLEET_ERROR_MAX, "%s",
             strncmp(text, "rediss:", 7) == 0
                 ? "there is no TLS in this client: use a tunnel"
                 : "it is no redis://[:PASSWORD@]HOST[:PORT][/DATABASE]");
    if (strncmp(text, scheme, sizeof scheme - 1) != 0 ||
        !store_copy(rest, sizeof rest, text + sizeof scheme - 1,
                    strlen(text) - (sizeof scheme - 1)))
        return false;
    char *host = strrchr(rest, '@');
    bool good = host == NULL || store_read_user(rest, (size_t)(host - rest), out);
    host = host != NULL ? host + 1 : rest;
    char *slash = strchr(host, '/');
    if (slash != NULL) {
        *slash = '\0';
        good = good && (slash[1] == '\0' || store_number(slash + 1, 1 << 20, &out->database));
    }
    char *colon = strrchr(host, ':');
    if (colon != NULL) {
        *colon = '\0';
        good = good && store_number(colon + 1, 65535, &out->port);
    }
    return good && host[0] != '\0' && store_copy(out->host, sizeof out->host, host, strlen(host));
}

/* ---- one command -------------------------------------------------------------------------- */

typedef struct store_talk {
    redisContext *context;
    struct timespec until;
    size_t got;  /* bytes, all answers together */
    char *error; /* FLEET_ERROR_MAX */
} store_talk;

static int store_left_ms(const store_talk *talk)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    long long ms = (long long)(talk->until.tv_sec - now.tv_sec) * 1000 +
                   (talk->until.tv_nsec - now.tv_nsec) / 1000000;
    return ms > 0 ? (int)ms : 0;
}

/* Everything that was appended is sent, and the next answer is read, all before the time is over.
 * hiredis alone would wait for each piece. NULL with a line. */
static redisReply *store_answer(store_talk *talk)
{
    void *reply = NULL;
    int sent = 0;
    while (reply == NULL) {
        struct pollfd ready = {talk->context->fd, (short)(sent ? POLLIN : POLLOUT), 0};
        if (poll(&ready, 1, store_left_ms(talk)) <= 0) {
            snprintf(talk->error, FLEET_ERROR_MAX, "the store does not answer in time");
            return NULL;
        }
        size_t before = talk->context->reader->len; /* what was parsed leaves it, further below */
        int result = sent ? redisBufferRead(talk->context) : redisBufferWrite(talk->context, &sent);
        talk->got += talk->context->reader->len - before;
        if (result != REDIS_OK || redisGetReplyFromReader(talk->context, &reply) != REDIS_OK) {
            snprintf(talk->error, FLEET_ERROR_MAX, "%.150s", talk->context->errstr);
            return NULL;
        }
        if (talk->got > STORE_ANSWER_MAX) {
            if (reply != NULL)
                freeReplyObject(reply);
            snprintf(talk->error, FLEET_ERROR_MAX, "the store's answer is too long");
            return NULL;
        }
    }
    return reply;
}

/* The answer to what was appended, of this type; it is freed unless `out` wants it. */
static bool store_expect(store_talk *talk, int type, redisReply **out)
{
    redisReply *reply = store_answer(talk);
    bool good = reply != NULL && reply->type == type;
    if (reply != NULL && !good)
        snprintf(talk->error, FLEET_ERROR_MAX, "the store says: %.150s",
                 reply->type == REDIS_REPLY_ERROR ? reply->str : "something else");
    if (good && out != NULL)
        *out = reply;
    else if (reply != NULL)
        freeReplyObject(reply);
    return good;
}

static bool store_log_in(store_talk *talk, const fleet_url *url)
{
    if (url->user[0] != '\0')
        redisAppendCommand(talk->context, "AUTH %s %s", url->user, url->password);
    else if (url->password[0] != '\0')
        redisAppendCommand(talk->context, "AUTH %s", url->password);
    if ((url->user[0] != '\0' || url->password[0] != '\0') &&
        !store_expect(talk, REDIS_REPLY_STATUS, NULL))
        return false;
    if (url->database == 0)
        return true;
    redisAppendCommand(talk->context, "SELECT %d", url->database);
    return store_expect(talk, REDIS_REPLY_STATUS, NULL);
}

static bool store_open(store_talk *talk, const fleet_url *url, int ms, char *error)
{
    struct timeval patience = {ms / 1000, ms % 1000 * 1000};
    tide_assert(ms > 0);
    *talk = (store_talk){.error = error};
    talk->context = redisConnectWithTimeout(url->host, url->port, patience);
    clock_gettime(CLOCK_MONOTONIC, &talk->until);
    talk->until.tv_nsec += ms % 1000 * 1000000L;
    talk->until.tv_sec += ms / 1000 + talk->until.tv_nsec / 1000000000;
    talk->until.tv_nsec %= 1000000000;
    if (talk->context != NULL && talk->context->err == 0 &&
        redisSetTimeout(talk->context, patience) == REDIS_OK) /* else a write may wait for ever */
        return store_log_in(talk, url);
    snprintf(error, FLEET_ERROR_MAX, "%.150s",
             talk->context != NULL ? talk->context->errstr : "no memory");
    return false;
}

static void store_close(store_talk *talk)
{
    if (talk->context != NULL)
        redisFree(talk->context);
}

/* ---- push, pull --------------------------------------------------------------------------- */

bool fleet_push(const fleet_url *url, const char *id, const char *member, const char *text,
                size_t length, int ms, char error[FLEET_ERROR_MAX])
{
    store_talk talk;
    if (length > FLEET_TEXT_MAX) {
        snprintf(error, FLEET_ERROR_MAX, "the profile has %zu bytes, limit %d", length,
                 FLEET_TEXT_MAX);
        return false;
    }
    bool good = store_open(&talk, url, ms, error);
    if (good) {
        redisAppendCommand(
            talk.context, "EVAL %s 2 tidepool:{%s}:texts tidepool:{%s}:times %s %b %d %d",
            store_push, id, id, member, text, length, FLEET_MEMBERS, FLEET_DAYS * 24 * 3600);
        good = store_expect(&talk, REDIS_REPLY_INTEGER, NULL);
    }
    store_close(&talk);
    return good;
}

bool fleet_pull(const fleet_url *url, const char *id, int ms,
                void (*take)(void *user, const char *text, size_t length), void *user,
                char error[FLEET_ERROR_MAX])
{
    store_talk talk;
    redisReply *reply = NULL;
    bool good = store_open(&talk, url, ms, error);
    if (good) {
        redisAppendCommand(talk.context, "HVALS tidepool:{%s}:texts", id);
        good = store_expect(&talk, REDIS_REPLY_ARRAY, &reply);
    }
    for (size_t i = 0; good && i < reply->elements && i < FLEET_MEMBERS; i++)
        if (reply->element[i]->type == REDIS_REPLY_STRING)
            take(user, reply->element[i]->str, (size_t)reply->element[i]->len);
    if (reply != NULL)
        freeReplyObject(reply);
    store_close(&talk);
    return good;
}
