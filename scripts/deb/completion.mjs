// Completion for bash and zsh as static text: a Tab must not wait for Node to start.

/** What a flag's value is completed with, by its name. */
function argumentOf({ names, choices, type }) {
  const [name = ""] = names.slice(-1);
  if (type === "boolean") return { kind: "none" };
  if (choices.length > 0) return { kind: "words", words: choices };
  if (name === "--line") return { kind: "device" };
  if (/^--(?:config|file|folder|state)$|-file$/.test(name)) return { kind: "file" };
  return { kind: "other" };
}

/** Devices that are worth offering; names that survive a replug first. */
const devices = "/dev/serial/by-id/* /dev/ttyUSB* /dev/ttyACM* /dev/ttyAMA* /dev/ttyS*";

/** The negation of a flag that is on unless told otherwise. */
const flagsOf = ({ names, type, fallback }) =>
  type === "boolean" && fallback === "true" ? names.map((name) => name.replace(/^--/, "--no-")) : names;

export function bashCompletion(commands, routes) {
  const flags = commands.map(
    ({ name, options }) => `    ${name}) flags="${[...options.flatMap(flagsOf), "--help"].join(" ")}" ;;`,
  );
  const values = commands.flatMap(({ name, options }) =>
    options.flatMap((option) => {
      const value = argumentOf(option);
      if (value.kind === "none") return [];
      const pattern = option.names.map((each) => `${name}:${each}`).join("|");
      const reply = {
        words: `_posline_words "${(value.words ?? []).join(" ")}" "$cur"`,
        device: '_posline_devices "$cur"',
        file: 'compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$cur")',
        other: "COMPREPLY=()",
      }[value.kind];
      return [`    ${pattern}) ${reply}; return ;;`];
    }),
  );
  const files = ["-", ...commands.filter(({ usage }) => usage.endsWith("[file]")).map(({ name }) => name)];
  const perService = routes.map(({ service, routes: known }) => `      ${service}) words="${known.join(" ")}" ;;`);
  return `# bash completion of posline
_posline_words() {
  mapfile -t COMPREPLY < <(compgen -W "$1" -- "$2")
}

_posline_devices() {
  local each found=()
  for each in ${devices}; do
    if [[ -e $each ]]; then found+=("$each"); fi
  done
  _posline_words "\${found[*]}" "$1"
}

_posline() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} command=\${COMP_WORDS[1]} flags="" words=""
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    _posline_words "${commands.map(({ name }) => name).join(" ")} --help --version" "$cur"
    return
  fi
  case "$command:$prev" in
${values.join("\n")}
  esac
  case "$command" in
${flags.join("\n")}
  esac
  if [[ $cur == -* ]]; then
    _posline_words "$flags" "$cur"
    return
  fi
  case "$command" in
    ${files.join("|")}) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
  esac
  if [[ $command == call ]]; then
    if ((COMP_CWORD == 2)); then words="${routes.map(({ service }) => service).join(" ")}"; fi
    if ((COMP_CWORD == 3)); then
      case "$prev" in
${perService.join("\n")}
      esac
    fi
    _posline_words "$words" "$cur"
  fi
}
complete -F _posline posline
`;
}

/** Text inside single quotes of zsh, in a place where brackets and colons mean something. */
const zshText = (text) => text.replace(/[[\]:\\]/g, "\\$&").replaceAll("'", "'\\''");

function zshOption(option) {
  const value = argumentOf(option);
  const action = {
    none: "",
    words: `:value:(${(value.words ?? []).join(" ")})`,
    device: ":device:_posline_devices",
    file: ":file:_files",
    other: ":value: ",
  }[value.kind];
  const repeat = option.type === "array" ? "*" : "";
  return flagsOf(option).map((name) => `'${repeat}${name}[${zshText(option.describe)}]${action}'`);
}

export function zshCompletion(commands, routes) {
  const described = commands.map(({ name, describe }) => `    '${name}:${zshText(describe)}'`);
  const cases = commands.map(({ name, usage, options }) => {
    const specs = [...options.flatMap(zshOption), "'--help[Show help]'"];
    if (usage.endsWith("[file]")) specs.push("'*:file:_files'");
    if (name === "call") specs.push("'1:service:_posline_services'", "'2:route:_posline_routes'", "'3:body: '");
    return `    ${name})\n      _arguments ${specs.join(" \\\n        ")} ;;`;
  });
  const perService = routes.map(({ service, routes: known }) => `    ${service}) compadd ${known.join(" ")} ;;`);
  return `#compdef posline
# zsh completion of posline
_posline_devices() {
  local -a found
  found=(${devices
    .split(" ")
    .map((pattern) => `${pattern}(N)`)
    .join(" ")})
  compadd -a found
}

_posline_services() {
  compadd ${routes.map(({ service }) => service).join(" ")}
}

_posline_routes() {
  case $line[1] in
${perService.join("\n")}
  esac
}

_posline() {
  local curcontext=$curcontext state line
  local -a commands
  commands=(
${described.join("\n")}
  )
  _arguments -C '1:command:->command' '*::argument:->argument' '(- *)--help[Show help]' '(- *)--version[Show version number]'
  if [[ $state == command ]]; then
    _describe command commands
    return
  fi
  case $words[1] in
${cases.join("\n")}
  esac
}

_posline "$@"
`;
}
