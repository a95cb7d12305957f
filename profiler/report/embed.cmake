# SPDX-License-Identifier: MIT
# Writes OUT, a source of C with one array for each pair of a name and a file in PARTS; each ends in a 0.
set(text "/* Made by embed.cmake. */\n")
while(PARTS)
    list(POP_FRONT PARTS name file)
    file(READ ${file} bytes HEX)
    string(REGEX REPLACE "(................................................................)" "\\1\n" bytes "${bytes}")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
    string(APPEND text "extern const unsigned char tide_page_${name}[];\n"
        "const unsigned char tide_page_${name}[] = {${bytes}0};\n")
endwhile()
file(WRITE ${OUT} "${text}")
