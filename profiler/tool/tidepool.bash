# SPDX-License-Identifier: MIT
# Completion of tidepool for bash: commands, processes, files. Names of sites are another program's
# texts; the shell expands none.
_tidepool() {
    local word=${COMP_WORDS[COMP_CWORD]}
    case $COMP_CWORD:${COMP_WORDS[1]} in
    1:*) mapfile -t COMPREPLY < <(compgen -W "$("${COMP_WORDS[0]}" --help 2>/dev/null | sed -n 's/^  \([a-z]*\) .*/\1/p')" -- "$word") ;;
    *:pprof | *:record | *:report | *:profile) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
    2:*) mapfile -t COMPREPLY < <(compgen -W "$("${COMP_WORDS[0]}" ps 2>/dev/null | sed 1d | awk '{ print $1 }')" -- "$word") ;;
    esac
}
complete -F _tidepool tidepool
