/* SPDX-License-Identifier: MIT */
/* Obeys clients. A site is looked up and used with the registry locked, so that its module is not
 * unloaded in between. */
#define _GNU_SOURCE
#include "jit/listen/listen.h"

#include <string.h>

#include <tidepool/dynamic.h>
#include <tidepool/facts.h>
#include <tidepool/tunable.h>
#include <tidepool/tune.h>
#include <tidepool/upkeep.h>

#include "jit/facts/tunables.h"
#include "jit/learn/background.h"
#include "jit/learn/learner.h"
#include "jit/spec/spec.h"
#include "runtime/base/assert.h"
#include "runtime/base/document.h"
#include "runtime/base/error.h"
#include "runtime/base/os.h"
#include "runtime/base/registry.h"
#include "runtime/scope/site.h"

static const char call[] = "request";

static bool order_fits(const tide_listen_order *order, const tide_site *site)
{
    if (order->kind != NULL && strcmp(order->kind, tide_kind_name(site->kind)) != 0)
        return false;
    if (order->id != 0)
        return site->record->id == order->id;
    return order->name != NULL && strcmp(order->name, tide_site_name(site)) == 0;
}

/* Registry locked. NULL with a message. The first of several of one kind, as tide_site_find. */
static tide_site *order_find_site(const tide_listen_order *order)
{
    tide_site *const *sites, *found = NULL;
    size_t count = tide_site_list(&sites);
    for (size_t i = 0; i < count; i++) {
        if (!order_fits(order, sites[i]))
            continue;
        if (found != NULL && found->kind != sites[i]->kind) {
            tide_fail(TIDE_ERROR_ARGUMENT, call, "'%s' is a %s and a %s: say which kind",
                      order->name, tide_kind_name(found->kind), tide_kind_name(sites[i]->kind));
            return NULL;
        }
        found = found != NULL ? found : sites[i];
    }
    if (found == NULL && order->id != 0)
        tide_fail(TIDE_ERROR_NAME, call, "no site has the number %llu",
                  (unsigned long long)order->id);
    else if (found == NULL)
        tide_fail(TIDE_ERROR_NAME, call, "no %s has the name '%.200s'",
                  order->kind != NULL ? order->kind : "site",
                  order->name != NULL ? order->name : "");
    tide_assert(found == NULL || found->record != NULL);
    return found;
}

static tide_status order_pin(tide_site *site, const char *tier)
{
    for (int i = TIDE_TIER_FULL; i <= TIDE_TIER_COMPILED; i++)
        if (tier != NULL && strcmp(tier, tide_tier_name((tide_tier)i)) == 0)
            return tide_site_pin(site, (tide_tier)i);
    return tide_fail(TIDE_ERROR_NAME, call, "'%.40s' is no tier: full, table, compiled",
                     tier != NULL ? tier : "");
}

static tide_status order_declare(tide_site *site, const tide_listen_order *order)
{
    tide_type types[TIDE_SITE_TYPES];
    if (order->type_count == 0 || order->type_count > TIDE_SITE_TYPES)
        return tide_fail(TIDE_ERROR_SIZE, call, "1 to %d types may be declared", TIDE_SITE_TYPES);
    for (size_t i = 0; i < order->type_count; i++) {
        types[i] = tide_type_find(order->types[i]);
        if (types[i] == 0)
            return tide_fail(TIDE_ERROR_NAME, call, "no type has the name '%.200s'",
                             order->types[i] != NULL ? order->types[i] : "");
    }
    return tide_site_declare(site, types, order->type_count);
}

/* Registry locked. */
static tide_status order_change_site(tide_site *site, const tide_listen_order *order)
{
    if (site == NULL)
        return tide_error_status();
    if (strcmp(order->verb, "pin") == 0)
        return order_pin(site, order->tier);
    if (strcmp(order->verb, "unpin") == 0)
        return tide_site_unpin(site);
    if (strcmp(order->verb, "reset") == 0)
        return tide_site_reset(site);
    if (strcmp(order->verb, "declare") == 0)
        return order_declare(site, order);
    if (strcmp(order->verb, "compile-now") == 0)
        return tide_site_compile_now(site);
    return tide_fail(TIDE_ERROR_ARGUMENT, call, "do: no such verb");
}

/* Registry locked. A knob's value is whole. */
static tide_status order_tell(tide_tunable *tunable, const tide_listen_order *order)
{
    if (tunable == NULL)
        return tide_error_status();
    if (strcmp(order->verb, "forget") == 0)
        return tide_tunable_reset(tunable);
    if (order->variant != NULL)
        return tide_tunable_pin(tunable, order->row, order->variant);
    if (!(order->value >= 0 && order->value < (double)TIDE_TUNABLE_LIMIT) ||
        (double)(int64_t)order->value != order->value)
        return tide_fail(TIDE_ERROR_SIZE, call, "tell: neither a variant nor a whole value");
    return tide_tunable_set(tunable, (int64_t)order->value);
}

static tide_status order_change_tunable(const tide_listen_order *order)
{
    tide_registry_lock();
    tide_status status = order_tell(tide_tunable_find(order->tunable), order);
    tide_registry_unlock();
    return status;
}

tide_status tide_listen_write_tunable(const tide_listen_order *order, FILE *out)
{
    tide_document document;
    TIDE_FORWARD(tide_document_begin(&document, call));
    tide_registry_lock();
    const tide_tunable *tunable = tide_tunable_find(order->tunable);
    if (tunable != NULL)
        tide_tunable_write(&(tide_json){.out = document.page}, NULL, tunable);
    tide_registry_unlock();
    if (tunable != NULL) {
        putc('\n', document.page);
        return tide_document_end(&document, out, call);
    }
    tide_document_drop(&document);
    return tide_error_status();
}

tide_status tide_listen_obey(const tide_listen_order *order)
{
    if (strcmp(order->verb, "set") == 0)
        return tide_tune_set(order->key, order->value);
    if (strcmp(order->verb, "trim") == 0)
        return tide_pool_request_by_id(order->id, TIDE_REQUEST_TRIM);
    if (strcmp(order->verb, "tell") == 0 || strcmp(order->verb, "forget") == 0)
        return order_change_tunable(order);
    tide_registry_lock();
    tide_status status = order_change_site(order_find_site(order), order);
    tide_registry_unlock();
    if (status == TIDE_OK && strcmp(order->verb, "compile-now") == 0)
        tide_background_wanted(); /* again: no thread starts while the registry is locked */
    return status;
}

/* Registry locked. */
static tide_status order_make_spec(const tide_site *site, tide_spec *spec)
{
    if (site == NULL)
        return tide_error_status();
    const tide_learner *learner = site->record->learner;
    const tide_learned *plan = learner != NULL ? tide_learner_plan_in_force(learner) : NULL;
    if (plan == NULL || !tide_items_fit(&plan->items))
        return tide_fail(TIDE_ERROR_STATE, call, "%s of '%.200s'",
                         plan == NULL ? "nothing has been learned yet" : "no code is made",
                         tide_site_name(site));
    tide_learned_spec(plan, spec);
    return TIDE_OK;
}

tide_status tide_listen_write_spec(const tide_listen_order *order, FILE *out)
{
    tide_spec *spec = tide_os_resize(NULL, sizeof *spec + TIDE_SPEC_SITE_BYTES);
    if (spec == NULL)
        return tide_fail(TIDE_ERROR_MEMORY, call, "no memory for the spec");
    char *text = (char *)(spec + 1);
    tide_registry_lock();
    tide_status status = order_make_spec(order_find_site(order), spec);
    tide_registry_unlock();
    if (status == TIDE_OK) {
        (void)tide_spec_write_head(text, TIDE_SPEC_SITE_BYTES);
        (void)fputs(text, out);
        (void)tide_spec_write(spec, text, TIDE_SPEC_SITE_BYTES);
        (void)fputs(text, out);
    }
    tide_os_free(spec);
    return status;
}
