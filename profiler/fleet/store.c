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

/* KEYS: texts, times, turns. ARGV: contributor, text, most contributors, seconds until all expire,
 * the contributor's time. One that was overtaken is late by less than a minute; a clock that was set
 * back may be late by more. */
static const char store_push[] =
    "local last, now = redis.call('HGET', KEYS[3], ARGV[1]), redis.call('TIME')[1] "
    "local came = redis.call('ZSCORE', KEYS[2], ARGV[1]) "
    "if last and came and tonumber(last) > tonumber(ARGV[5]) and now - came < 60 then return 0 end "
    "redis.call('HSET', KEYS[1], ARGV[1], ARGV[2]) "
    "redis.call('ZADD', KEYS[2], now, ARGV[1]) "
    "redis.call('HSET', KEYS[3], ARGV[1], ARGV[5]) "
    "local over = redis.call('ZCARD', KEYS[2]) - tonumber(ARGV[3]) "
    "for i = 1, over do "
    "  local old = redis.call('ZPOPMIN', KEYS[2])[1] "
    "  redis.call('HDEL', KEYS[1], old) redis.call('HDEL', KEYS[3], old) "
    "end "
    "for i = 1, 3 do redis.call('EXPIRE', KEYS[i], ARGV[4]) end "
    "return redis.call('HLEN', KEYS[1])";

/* KEYS: texts, times. ARGV: most contributors. Texts and their ages in seconds, in turn. */
static const char store_pull[] =
    "local who = redis.call('ZREVRANGE', KEYS[2], 0, ARGV[1] - 1, 'WITHSCORES') "
    "local now, out = redis.call('TIME')[1], {} "
    "for i = 1, #who, 2 do "
    "  local text = redis.call('HGET', KEYS[1], who[i]) "
    "  if text then out[#out + 1] = text out[#out + 1] = math.floor(now - who[i + 1]) end "
    "end "
    "return out";

#define STORE_PULLED_MAX ((size_t)FLEET_MEMBERS * FLEET_TEXT_MAX + ((size_t)1 << 20))
#define STORE_ANSWER_MAX ((size_t)1 << 14) /* of all else */

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
                 ? "hiredis 0.14 has no TLS: use a tunnel"
                 : "it is no redis://[:PASSWORD@]HOST[:PORT][/DATABASE][#PROGRAM]");
    if (strncmp(text, scheme, sizeof scheme - 1) != 0 ||
        !store_copy(rest, sizeof rest, text + sizeof scheme - 1,
                    strlen(text) - (sizeof scheme - 1)))
        return false;
    char *host = strrchr(rest, '@');
    bool good = host == NULL || store_read_user(rest, (size_t)(host - rest), out);
    host = host != NULL ? host + 1 : rest;
    char *program = strchr(host, '#');
    if (program != NULL) {
        *program++ = '\0';
        good = good && program[0] != '\0' && program[strcspn(program, "{}% \t\n")] == '\0' &&
               store_copy(out->program, sizeof out->program, program, strlen(program));
    }
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
    size_t got, most; /* bytes, all answers together */
    char *error;      /* FLEET_ERROR_MAX */
} store_talk;

struct timespec fleet_in(int ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += ms % 1000 * 1000000L;
    until.tv_sec += ms / 1000 + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    return until;
}

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
        if (talk->got > talk->most) {
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
    const char *user = url->user[0] != '\0' ? url->user : "default";
    if (url->user[0] != '\0' || url->password[0] != '\0') {
        redisAppendCommand(talk->context, "AUTH %s %s", user, url->password);
        if (!store_expect(talk, REDIS_REPLY_STATUS, NULL))
            return false;
    }
    if (url->database == 0)
        return true;
    redisAppendCommand(talk->context, "SELECT %d", url->database);
    return store_expect(talk, REDIS_REPLY_STATUS, NULL);
}

static bool store_open(store_talk *talk, const fleet_url *url, int ms, char *error)
{
    struct timeval patience = {ms / 1000, ms % 1000 * 1000};
    tide_assert(ms > 0);
    *talk = (store_talk){.error = error, .most = STORE_ANSWER_MAX};
    talk->context = redisConnectWithTimeout(url->host, url->port, patience);
    talk->until = fleet_in(ms);
    if (talk->context != NULL && talk->context->err == 0 &&
        redisSetTimeout(talk->context, patience) == REDIS_OK) /* else a write may wait for ever */
        return store_log_in(talk, url);
    snprintf(error, FLEET_ERROR_MAX, "%.150s",
             talk->context != NULL ? talk->context->errstr : "no memory");
    return false;
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
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    bool good = store_open(&talk, url, ms, error);
    if (good) {
        redisAppendCommand(talk.context,
                           "EVAL %s 3 tidepool:{%s}:texts tidepool:{%s}:times tidepool:{%s}:turns "
                           "%s %b %d %d %lld",
                           store_push, id, id, id, member, text, length, FLEET_MEMBERS,
                           FLEET_DAYS * 24 * 3600,
                           (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000);
        good = store_expect(&talk, REDIS_REPLY_INTEGER, NULL);
    }
    redisFree(talk.context);
    return good;
}

/* Halved every week; nothing once it would have expired. */
static double store_weight(long long age)
{
    const long long day = 24 * 3600;
    if (age >= FLEET_DAYS * day)
        return 0;
    return age < 0 ? 1 : 1.0 / (double)(1 << age / (FLEET_HALF_DAYS * day));
}

bool fleet_pull(const fleet_url *url, const char *id, int ms, fleet_take *take, void *user,
                char error[FLEET_ERROR_MAX])
{
    store_talk talk;
    redisReply *reply = NULL;
    bool good = store_open(&talk, url, ms, error);
    if (good) {
        talk.most = STORE_PULLED_MAX;
        redisAppendCommand(talk.context, "EVAL %s 2 tidepool:{%s}:texts tidepool:{%s}:times %d",
                           store_pull, id, id, FLEET_MEMBERS);
        good = store_expect(&talk, REDIS_REPLY_ARRAY, &reply);
    }
    for (size_t i = 0; good && i + 1 < reply->elements && i < 2 * FLEET_MEMBERS; i += 2) {
        const redisReply *text = reply->element[i], *age = reply->element[i + 1];
        double weight = age->type == REDIS_REPLY_INTEGER ? store_weight(age->integer) : 0;
        if (text->type == REDIS_REPLY_STRING && weight > 0)
            take(user, text->str, (size_t)text->len, weight);
    }
    freeReplyObject(reply);
    redisFree(talk.context);
    return good;
}
