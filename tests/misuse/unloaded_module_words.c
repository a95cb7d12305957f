/* SPDX-License-Identifier: MIT */
/* The module that tests/misuse/unloaded_module.c loads: the words of a place. */
extern const char place_file[], place_function[];
const char place_file[] = "a/file/of/the/module.c";
const char place_function[] = "function_of_the_module";
