# SPDX-License-Identifier: MIT
# bash completion of tidepool(1). What it offers it asks the command and the processes themselves.

# Offers those of the lines that begin with what is typed, in quotes where the shell wants some. They are names that
# other processes gave to things: compgen -W would expand them, and run what stands in a `$(...)` of theirs.
_tidepool_offer()
{
    local line quoted
    while IFS= read -r line; do
        printf -v quoted %q "$line"
        [[ -n $line && ($line == "$1"* || $quoted == "$1"*) ]] && COMPREPLY+=("$quoted")
    done
}

# The names of a process's sites, whole; those with quotes or backslashes have to be typed.
_tidepool_sites()
{
    "$1" sites "$2" --json 2>/dev/null | grep -o '"name":"[^"\\]*"' | cut -d '"' -f 4 | sort -u
}

_tidepool()
{
    local current=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} tool=${COMP_WORDS[0]}
    COMPREPLY=()
    if [[ $COMP_CWORD -eq 1 ]]; then
        _tidepool_offer "$current" < <("$tool" --help 2>/dev/null | sed -n 's/^  \([a-z]*\) .*/\1/p')
        return
    fi
    if [[ $current == -* ]]; then
        _tidepool_offer "$current" < <("$tool" "$command" --help 2>/dev/null | grep -o -- '--[a-z]*' | sort -u)
        return
    fi
    case ${COMP_WORDS[COMP_CWORD - 1]} in
    -o | --output)
        mapfile -t COMPREPLY < <(compgen -f -- "$current")
        return
        ;;
    -d | --folder)
        mapfile -t COMPREPLY < <(compgen -d -- "$current")
        return
        ;;
    esac
    local position=$COMP_CWORD
    case $command in
    profile)
        if [[ $position -eq 2 ]]; then
            _tidepool_offer "$current" < <(printf "%s\n" save merge push pull watch)
            return
        fi
        if [[ ${COMP_WORDS[2]} != save ]]; then
            mapfile -t COMPREPLY < <(compgen -f -- "$current")
            return
        fi
        position=$((position - 1))
        ;;
    pprof | record | report)
        mapfile -t COMPREPLY < <(compgen -f -- "$current")
        return
        ;;
    esac
    case $position:$command in
    2:*) _tidepool_offer "$current" < <("$tool" ps 2>/dev/null | sed 1d | awk '{ print $1 }') ;;
    3:pin | 3:unpin | 3:reset | 3:declare | 3:compile | 3:explain)
        _tidepool_offer "$current" < <(_tidepool_sites "$tool" "${COMP_WORDS[2]}")
        ;;
    4:pin) _tidepool_offer "$current" < <(printf '%s\n' full table compiled) ;;
    esac
}
complete -F _tidepool tidepool
