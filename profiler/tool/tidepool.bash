# SPDX-License-Identifier: MIT
# bash completion of tidepool(1). What it offers it asks the command and the processes themselves.
_tidepool()
{
    local current=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} tool=${COMP_WORDS[0]}
    COMPREPLY=()
    if [[ $COMP_CWORD -eq 1 ]]; then
        COMPREPLY=($(compgen -W "$("$tool" --help 2>/dev/null | sed -n 's/^  \([a-z]*\) .*/\1/p')" -- "$current"))
        return
    fi
    if [[ $current == -* ]]; then
        COMPREPLY=($(compgen -W "$("$tool" "$command" --help 2>/dev/null | grep -o -- '--[a-z]*')" -- "$current"))
        return
    fi
    case ${COMP_WORDS[COMP_CWORD - 1]} in
    -o | --output)
        COMPREPLY=($(compgen -f -- "$current"))
        return
        ;;
    -d | --folder)
        COMPREPLY=($(compgen -d -- "$current"))
        return
        ;;
    esac
    local position=$COMP_CWORD
    case $command in
    profile)
        [[ $position -eq 2 ]] && COMPREPLY=($(compgen -W "save show merge diff" -- "$current")) && return
        if [[ ${COMP_WORDS[2]} != save ]]; then
            COMPREPLY=($(compgen -f -- "$current"))
            return
        fi
        position=$((position - 1))
        ;;
    pprof | replay | record | report | trace)
        COMPREPLY=($(compgen -f -- "$current"))
        return
        ;;
    esac
    case $position:$command in
    2:*) COMPREPLY=($(compgen -W "$("$tool" ps 2>/dev/null | sed 1d | awk '{ print $1 }')" -- "$current")) ;;
    3:pin | 3:unpin | 3:reset | 3:declare | 3:compile | 3:explain)
        COMPREPLY=($(compgen -W "$("$tool" sites "${COMP_WORDS[2]}" 2>/dev/null | sed 1d | awk '{ print $2 }')" -- "$current"))
        ;;
    4:pin) COMPREPLY=($(compgen -W "full table compiled" -- "$current")) ;;
    esac
}
complete -F _tidepool tidepool
