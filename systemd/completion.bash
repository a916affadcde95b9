# bash completion for conversed. It takes commands and options from the program's `--help`,
# so it always has all of them.

_conversed() {
  local cur prev words cword
  _init_completion -n : || return

  # The subcommands on the line so far, without options and their values.
  local path=() word candidates at
  for ((at = 1; at < cword; at++)); do
    word="${words[at]}"
    [[ "${word}" == -* ]] && continue
    candidates="$("${words[0]}" "${path[@]}" --help 2> /dev/null |
      sed -n '/^Subcommands:/,$ s/^  \([a-z][a-z-]*\) .*/\1/p')"
    grep -qx -- "${word}" <<< "${candidates}" && path+=("${word}")
  done

  case "${prev}" in
    --config)
      _filedir
      return
      ;;
  esac
  local help
  help="$("${words[0]}" "${path[@]}" --help 2> /dev/null)" || return
  if [[ "${cur}" == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$(grep -o -- '^ *-[^ ]*' <<< "${help}" |
      grep -o -- '--[a-z][a-z-]*')" -- "${cur}")
    return
  fi
  candidates="$(sed -n '/^Subcommands:/,$ s/^  \([a-z][a-z-]*\) .*/\1/p' <<< "${help}")"
  if [[ -n "${candidates}" ]]; then
    mapfile -t COMPREPLY < <(compgen -W "${candidates}" -- "${cur}")
  fi
}

complete -F _conversed conversed
