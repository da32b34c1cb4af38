//! Which commands of a line apply a plan, and whether anything else in it could change the plan first.
//!
//! Judges nothing and reads no file. Refuses to guess: what is not known to leave infrastructure alone applies, and what is not known
//! to leave files alone is company that a verdict does not survive.

use std::path::PathBuf;

use writ_policy::Apply;
use writ_shell::{Access, Analysis, Command, Dir, Env, FileUse, Word};

/// Programs that apply.
const PROGRAMS: [&str; 4] = ["terraform", "tofu", "opentofu", "terragrunt"];
/// Their subcommands that apply nothing; some change the state, which is for other rules.
const HARMLESS: [&str; 19] = [
    "console",
    "fmt",
    "force-unlock",
    "get",
    "graph",
    "init",
    "login",
    "logout",
    "metadata",
    "modules",
    "output",
    "plan",
    "providers",
    "show",
    "state",
    "validate",
    "version",
    "workspace",
    "import",
];
/// Those of [`HARMLESS`] that write nothing.
const READING: [&str; 5] = ["graph", "output", "show", "validate", "version"];
/// Words that make terragrunt apply, and other programs that carry a call of one of [`PROGRAMS`].
const APPLYING: [&str; 6] = ["apply", "apply-all", "destroy", "destroy-all", "refresh", "test"];
/// Their options whose value is the next word.
const VALUED: [&str; 10] =
    ["var", "var-file", "target", "exclude", "replace", "state", "state-out", "backup", "lock-timeout", "parallelism"];
/// Programs that run others elsewhere, or whose code does.
const CARRIERS: [&str; 23] = [
    "docker",
    "podman",
    "nerdctl",
    "finch",
    "kubectl",
    "ssh",
    "mise",
    "asdf",
    "nix",
    "nix-shell",
    "devbox",
    "direnv",
    "tfenv",
    "op",
    "aws-vault",
    "python",
    "python3",
    "perl",
    "ruby",
    "node",
    "php",
    "lua",
    "pwsh",
];
/// Programs beside an apply that change no file of themselves; what they are redirected to is looked at.
const QUIET: [&str; 38] = [
    ":", "[", "[[", "builtin", "cat", "cd", "command", "date", "declare", "doas", "echo", "env", "exec", "export",
    "false", "grep", "head", "jq", "less", "local", "ls", "nice", "nohup", "popd", "printf", "pushd", "pwd",
    "readonly", "set", "sleep", "stdbuf", "sudo", "tail", "test", "time", "timeout", "true", "wc",
];
/// Shells, quiet when the code is in the line.
const SHELLS: [&str; 5] = ["sh", "bash", "dash", "zsh", "ksh"];
/// Where writing changes no file.
const SINKS: [&str; 4] = ["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty"];

/// A plan file's name, and the folder that `-chdir` names.
type Named = (Option<String>, String);

/// The applies of a line, without verdicts.
pub fn applies(analysis: &Analysis, env: &Env) -> Vec<Apply> {
    let mut applies = Vec::new();
    let mut company = None;
    for command in &analysis.commands {
        let Some(plan) = applied(command) else {
            if !is_quiet(command) {
                company.get_or_insert_with(|| name(command).unwrap_or("a program that is not known").to_owned());
            }
            continue;
        };
        let plans = match plan {
            Some((folder, plan)) => places(command, env, folder.as_deref(), &plan),
            None => vec![None],
        };
        let one = |plan| Apply { plan, span: command.span, company: None, verdict: None };
        applies.extend(plans.into_iter().map(one));
    }
    let company = company.or_else(|| written(analysis));
    applies.iter_mut().for_each(|apply| apply.company.clone_from(&company));
    applies
}

/// Whether a command applies, and the plan file it names, if it names one.
fn applied(command: &Command) -> Option<Option<Named>> {
    let words: Vec<Option<String>> = command.words.iter().skip(1).map(Word::literal).collect();
    let Some(name) = name(command) else {
        return words.iter().flatten().any(|word| APPLYING.contains(&word.as_str())).then_some(None);
    };
    let Some(program) = program(name) else { return carries(name, &words).then_some(None) };
    if program == "terragrunt" {
        let harms = |word: &Option<String>| word.as_deref().is_none_or(|word| APPLYING.contains(&word));
        return words.iter().any(harms).then_some(None);
    }
    let is = |word: &Option<String>, names: &[&str]| word.as_deref().is_some_and(|word| names.contains(&word));
    let helped = words.iter().take_while(|word| !is(word, &["--"])).any(|word| is(word, &["-help", "--help", "-h"]));
    if helped {
        return None;
    }
    // A word that is not known may be the subcommand; an empty one is passed over.
    let at =
        words.iter().position(|word| word.as_deref().is_none_or(|word| !word.is_empty() && !word.starts_with('-')))?;
    let (globals, rest) = words.split_at(at);
    let (subcommand, rest) = rest.split_first()?;
    match subcommand.as_deref() {
        Some("apply") => {}
        Some(known) if HARMLESS.contains(&known) => return None,
        _ => return Some(None),
    }
    let chdir = globals.iter().flatten().find_map(|word| word.trim_start_matches('-').strip_prefix("chdir="));
    match operands(rest).as_slice() {
        [Some(plan)] => Some(Some((chdir.map(str::to_owned), plan.clone()))),
        _ => Some(None),
    }
}

/// What is no option and no option's value.
fn operands(words: &[Option<String>]) -> Vec<&Option<String>> {
    let mut out: Vec<&Option<String>> = Vec::new();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        match word.as_deref().and_then(|word| word.strip_prefix('-')) {
            Some("-") => out.extend(rest.by_ref()),
            Some(option) if VALUED.contains(&option.trim_start_matches('-')) => drop(rest.next()),
            Some(_) => {}
            None => out.push(word),
        }
    }
    out
}

/// The program's base name; `None` where it is not known.
fn name(command: &Command) -> Option<&str> {
    let [writ_shell::Part::Text(word)] = command.words.first()?.parts.as_slice() else { return None };
    word.rsplit('/').next()
}

/// Which of [`PROGRAMS`] a base name is: `terraform.exe` and `terraform-1.9` too, `terraform-docs` not.
fn program(name: &str) -> Option<&'static str> {
    PROGRAMS.into_iter().find(|program| {
        let rest = name.strip_prefix(program).map(|rest| rest.strip_suffix(".exe").unwrap_or(rest));
        let version =
            |rest: &str| rest.trim_start_matches(['-', '_', '@', 'v']).starts_with(|c: char| c.is_ascii_digit());
        rest.is_some_and(|rest| rest.is_empty() || version(rest))
    })
}

/// Whether another program is told to call one of [`PROGRAMS`]: in a container, on a host, in code.
fn carries(name: &str, words: &[Option<String>]) -> bool {
    if !CARRIERS.iter().any(|carrier| name == *carrier || (carrier == &"python3" && name.starts_with("python3."))) {
        return false;
    }
    let no_part = |c: char| !(c.is_ascii_alphanumeric() || "._-/@:".contains(c));
    let mut tokens = words.iter().flatten().flat_map(|word| word.split(no_part)).filter(|token| !token.is_empty());
    let called = |token: &str| {
        let image = token.rsplit('/').next().unwrap_or(token);
        program(image.split([':', '@']).next().unwrap_or(image)).is_some()
    };
    tokens.by_ref().any(called) && tokens.any(|token| APPLYING.contains(&token))
}

/// Whether a command leaves files alone, but for what it is redirected to.
fn is_quiet(command: &Command) -> bool {
    let Some(name) = name(command) else { return false };
    let mut words = command.words.iter().skip(1).map(Word::literal);
    if SHELLS.contains(&name) {
        let flags = words.next().flatten().unwrap_or_default();
        let inline = flags.strip_prefix('-').and_then(|flags| flags.strip_suffix('c'));
        return inline.is_some_and(|rest| rest.chars().all(|flag| "eluxo".contains(flag)));
    }
    if program(name).is_some_and(|program| program != "terragrunt") {
        let subcommand = words.flatten().find(|word| !word.starts_with('-'));
        return subcommand.is_none_or(|word| READING.contains(&word.as_str()));
    }
    QUIET.contains(&name)
}

/// What the line writes, or what about it is not known.
fn written(analysis: &Analysis) -> Option<String> {
    let sink = |file: &FileUse| file.path.literal().is_some_and(|path| SINKS.contains(&path.as_str()));
    let files = analysis.files.iter().find(|file| file.access == Access::Write && !sink(file));
    let text = |word: &Word| word.literal().unwrap_or_else(|| "a file that is not known".to_owned());
    files
        .map(|file| text(&file.path))
        .or_else(|| analysis.arrivals.first().map(|arrival| text(&arrival.target.path)))
        .or_else(|| analysis.unresolved.first().map(|unresolved| unresolved.what.clone()))
}

/// Where the plan file lies, for every folder the command may run in.
fn places(command: &Command, env: &Env, chdir: Option<&str>, plan: &str) -> Vec<Option<String>> {
    let place = |dir: &Dir| {
        let Dir::Start(dir) = dir else { return None };
        let mut path = PathBuf::from(env.cwd.as_deref()?);
        path.push(dir);
        path.push(chdir.unwrap_or_default());
        path.push(plan);
        Some(path.to_string_lossy().into_owned())
    };
    command.dirs.iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use writ_shell::analyze;

    fn found(line: &str) -> Vec<Apply> {
        let env = Env { home: None, cwd: Some("/w".to_owned()), ..Env::default() };
        applies(&analyze(line, &env), &env)
    }

    #[test]
    fn applies_and_their_plan_files() {
        let one = |plan: &str| vec![Some(plan.to_owned())];
        for (line, expected) in [
            ("terraform apply tfplan", one("/w/tfplan")),
            ("tofu apply -auto-approve -lock-timeout 5s /p/tfplan", one("/p/tfplan")),
            ("terraform -chdir=infra apply tfplan", one("/w/infra/tfplan")),
            ("cd infra && terraform apply tfplan", one("/w/infra/tfplan")),
            ("sudo env A=b sh -c 'terraform apply -input=false tfplan'", one("/w/tfplan")),
            ("terraform '' apply -- -h", one("/w/-h")),
            ("terra''form apply tfplan", one("/w/tfplan")),
            ("T=terra; ${T}form apply tfplan", one("/w/tfplan")),
            ("terra{form,} apply", vec![None]),
            (r"$'\x74erraform' apply", vec![None]),
            ("terraform apply", vec![None]),
            ("terraform apply -auto-approve -var a=b", vec![None]),
            ("terraform apply a b", vec![None]),
            ("terraform apply $PLAN", vec![None]),
            ("terraform $WHAT tfplan", vec![None]),
            ("$(cat name) apply tfplan", vec![None]),
            ("terraform destroy", vec![None]),
            ("terraform refresh", vec![None]),
            ("tofu test", vec![None]),
            ("terraform.exe apply", vec![None]),
            ("/opt/terraform-1.9 apply", vec![None]),
            ("terragrunt run-all apply", vec![None]),
            ("terragrunt --working-dir x apply", vec![None]),
            ("terragrunt exec -- terraform apply", vec![None]),
            ("docker run --rm -v .:/w hashicorp/terraform:1.9 apply -auto-approve", vec![None]),
            ("ssh host 'cd x && terraform apply'", vec![None, None]),
            ("python3 -c \"import os; os.system('terraform apply')\"", vec![None, None]),
            ("terragrunt run-all plan", vec![]),
            ("terraform-docs markdown .", vec![]),
            ("terraform plan -out=tfplan && terraform show -json tfplan", vec![]),
            ("terraform apply -help", vec![]),
            ("echo terraform apply", vec![]),
            ("docker run hashicorp/terraform plan", vec![]),
        ] {
            let plans: Vec<Option<String>> = found(line).into_iter().map(|apply| apply.plan).collect();
            assert_eq!(plans, expected, "{line}");
        }
    }

    #[test]
    fn what_a_verdict_does_not_survive() {
        for line in [
            "terraform apply tfplan",
            "cd infra && terraform apply -no-color tfplan 2>&1 | tail -50",
            "set -e; terraform show tfplan > /dev/null; time sudo -u ci terraform apply tfplan",
            "bash -ec 'terraform apply tfplan'",
        ] {
            assert!(found(line).iter().all(|apply| apply.company.is_none()), "{line}: {:?}", found(line));
        }
        for line in [
            "cp evil tfplan && terraform apply tfplan",
            "echo x > tfplan; terraform apply tfplan",
            "ln -sf evil tfplan; terraform apply tfplan",
            "terraform plan -destroy -out tfplan && terraform apply tfplan",
            "sed -i s/a/b/ tfplan; terraform apply tfplan",
            "while :; do terraform apply tfplan; cp x tfplan; done",
            "./prepare && terraform apply tfplan",
            "$X; terraform apply tfplan",
            "bash prepare.sh; terraform apply tfplan",
            "terraform() { cp evil tfplan; command terraform apply tfplan; }; terraform apply tfplan",
            "terraform apply tfplan | tee link",
            "PATH=.:$PATH terraform apply tfplan",
            "cat <(cp evil tfplan); terraform apply tfplan",
            "cp evil tfplan & terraform apply tfplan",
            "exec 3>tfplan; terraform apply tfplan",
            "LESSOPEN='|cp evil tfplan' less x; terraform apply tfplan",
            "set -x; PS4='$(cp evil tfplan)'; terraform apply tfplan",
            "trap 'cp evil tfplan' DEBUG; terraform apply tfplan",
            "alias terraform='cp evil tfplan; terraform'; terraform apply tfplan",
            "echo $(cp evil tfplan); terraform apply tfplan",
            "[[ -n $(cp evil tfplan) ]]; terraform apply tfplan",
            "BASH_ENV=./evil bash -c 'terraform apply tfplan'",
            "coproc cp evil tfplan; terraform apply tfplan",
            "bash -c 'terraform apply tfplan' < /dev/null; . ./evil; terraform apply tfplan",
            "terraform apply \"$(cp evil tfplan; echo tfplan)\"",
            "declare -x A=$(cp evil tfplan); terraform apply tfplan",
            "env -S 'cp evil tfplan'; terraform apply tfplan",
            "terraform providers mirror tfplan; terraform apply tfplan",
            "TF_REATTACH_PROVIDERS='{}' terraform apply tfplan",
            "export TF_CLI_CONFIG_FILE=evil.tfrc; terraform apply tfplan",
            "env TF_DATA_DIR=evil terraform apply tfplan",
        ] {
            let found = found(line);
            assert!(!found.is_empty() && found.iter().all(|apply| apply.company.is_some()), "{line}: {found:?}");
        }
    }
}
