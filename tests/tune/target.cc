// SPDX-License-Identifier: MIT
// The same in C++: tunables and sites of inline functions and templates, too, are listed before any use.
#include <cstdio>
#include <cstring>

#include <tidepool/scope.h>
#include <tidepool/site.h>
#include <tidepool/tidepool.h>
#include <tidepool/tunable.h>

TIDE_VARIANTS(work, "work", "one", "two");
TIDE_KNOB(file_knob, "of the file", 0, 10, 5);

inline int64_t inline_knob()
{
    TIDE_SCOPE_NAMED(tide_pool_local(), "inline");
    return tide_tunable("inline", 8, 64) + tide_tunable("inline, the second", 0, 3, 1);
}

template <class T> T template_knob()
{
    auto inside = [](auto more) {
        TIDE_SCOPE_NAMED(tide_pool_local(), "lambda");
        return more;
    };
    TIDE_SCOPE_NAMED(tide_pool_local(), "template");
    return static_cast<T>(inside(tide_tunable("of a template", 1, 9)));
}

int main(int count, char **args)
{
    if (count > 1 && std::strcmp(args[1], "list") == 0) {
        tide_tunable_each(
            [](tide_tunable *tunable, void *) {
                std::printf("%s %ld\n", tunable->name,
                            static_cast<long>(tide_tunable_value(tunable)));
                return true;
            },
            nullptr);
        tide_site_each(
            [](tide_site *site, void *) {
                tide_site_information info;
                if (tide_site_info(site, &info) == TIDE_OK)
                    std::printf("site %s\n", info.name);
                return true;
            },
            nullptr);
        return 0;
    }
    TIDE_MEASURE(&work, 3, which);
    const char *const set[] = {"inline", "of a template", "of the file"};
    if (count > 1 && std::strcmp(args[1], "set") == 0)
        for (const char *name : set)
            if (tide_tunable_set(tide_tunable_find(name), 9) != TIDE_OK)
                return 1;
    return inline_knob() + template_knob<int>() + tide_tunable_value(&file_knob) + which > 0 ? 0
                                                                                             : 1;
}
