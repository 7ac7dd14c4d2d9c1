# Completion of tools/inferops in bash: `. tools/completion/inferops.bash`, in zsh after `autoload -U bashcompinit && bashcompinit`.
# Commands and options are asked of the program's own help, so that they are those of its version.
_inferops() {
  local program=$1 word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]-} i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    [ "${COMP_WORDS[i]}" = -- ] && return # behind it are the server's arguments
  done
  if [ "$COMP_CWORD" -eq 1 ]; then
    mapfile -t COMPREPLY < <(compgen -W "$("$program" --help 2>/dev/null | sed -n 's/^    \([a-z]\{4,\}\)\( .*\)\{0,1\}$/\1/p')" -- "$word")
  elif [ "$before" = --format ]; then
    mapfile -t COMPREPLY < <(compgen -W "$("$program" "$command" --help 2>/dev/null | sed -n 's/.*--format {\([a-z,]*\)}.*/\1/p' | tr , ' ')" -- "$word")
  elif [ "${word#-}" != "$word" ]; then
    mapfile -t COMPREPLY < <(compgen -W "$("$program" "$command" --help 2>/dev/null | grep -oE -- '--[a-z][a-z-]*')" -- "$word")
  fi
}
complete -o default -F _inferops inferops tools/inferops
