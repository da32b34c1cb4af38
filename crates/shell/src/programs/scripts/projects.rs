//! Programs that run a project's own files: what of them the agent wrote is followed when one runs. Which files those are is the
//! `project-files` of an entry; what counts as one, of `data/programs/projects.toml`.
//!
//! Owns which files count and how each is read; judges nothing. What is not a script in a language with a reader of its own is
//! handed on as text, so that a rule is held against what it names. Page: `spec/shell.md`.

use writ_core::Span;
use writ_core::json::{Object, Value};

use crate::action::{NetTarget, UnknownUseKind};
use crate::eval::Eval;
use crate::eval::input::Input;
use crate::programs::entries::{entry, file_kind};
use crate::programs::interpreters::git_code;
use crate::programs::scripts::languages::{self, Origin, RUNS};
use crate::programs::scripts::{followed, package_scripts};
use crate::settings;
use crate::shape::{is_flag, text_word};
use crate::word::{Dir, Word};

/// Most bytes that are followed for one command; beyond them it is a `limit`.
const MOST: usize = 2 << 20;
/// Most pieces of one file that are handed on.
const MAX_PIECES: usize = 256;

/// What reads or writes a file.
const TOUCHES: [&str; 12] =
    ["read", "open", "include", "file", "load", "import", "source", "write", "path", "copy", "embed", "require"];

/// Follows what a program runs of what the agent wrote below the folders that it is told of.
pub fn run(eval: &mut Eval<'_>, base: &str, arguments: &[Word], span: Span) {
    if eval.sources.files().is_empty() && !eval.wrote_a_text() {
        return;
    }
    let Some(kinds) = kinds(base, arguments) else { return };
    let mut files: Vec<String> = eval.sources.files().to_vec();
    files.extend(eval.written_here());
    files.retain(|path| is_of(path, kinds));
    if files.is_empty() {
        return;
    }
    let mut folders: Vec<String> = here(eval);
    let words = arguments.iter().filter_map(Word::literal);
    let named: Vec<String> =
        words.filter_map(|text| text.rsplit('=').next().map(str::to_owned)).filter(|text| !text.is_empty()).collect();
    // What is named may be a file of the project; an Agentfile's name may be any.
    let parents = named
        .iter()
        .filter_map(|file| file.rsplit_once('/'))
        .filter(|(_, name)| kinds == "agentfile" || is_of(name, kinds));
    let parents: Vec<String> = parents.map(|(parent, _)| format!("{parent}/")).collect();
    folders.extend(named.iter().chain(&parents).flat_map(|folder| absolute(eval, folder)));
    let near = |path: &str| {
        let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
        let lies = |inner: &str, outer: &str| {
            inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        folders.is_empty() || folders.iter().any(|folder| lies(path, folder) || lies(folder, parent))
    };
    files.retain(|path| near(path));
    files.sort_unstable();
    files.dedup();
    let mut left = MOST;
    for path in files {
        if eval.written.followed.contains(&path) {
            continue;
        }
        let Some(text) = eval.text_known(&text_word(&path, span)) else { continue };
        eval.written.followed.push(path.clone());
        left = left.saturating_sub(text.len());
        if left == 0 || !eval.spend(16 + text.len() / 32) {
            return eval.limit("more files that the agent wrote than can be followed");
        }
        let before = eval.dirs.clone();
        if let Some((folder, _)) = path.rsplit_once('/') {
            eval.dirs.push(Dir::Start(folder.to_owned()));
        }
        eval.deeper(|eval| file(eval, &path, &text, span));
        eval.dirs = before;
    }
}

/// The kinds of files that a program runs.
fn kinds(base: &str, arguments: &[Word]) -> Option<&'static str> {
    let texts: Vec<String> = arguments.iter().filter_map(Word::literal).collect();
    let plain: Vec<&String> = texts.iter().filter(|text| !text.starts_with('-')).take(3).collect();
    let listed = |name: &str| entry(name).map(|entry| entry.project_files).filter(|kinds| !kinds.is_empty());
    if base.starts_with("python") || base.starts_with("pypy") {
        let module = texts.iter().position(|text| text == "-m").and_then(|at| texts.get(at + 1));
        let script = plain.first().map(|path| path.rsplit('/').next().unwrap_or_default());
        return module.map(String::as_str).or(script).and_then(listed);
    }
    // A folder, whose entry point is a matter of its `package.json`.
    let entry = plain.first().is_some_and(|path| !path.rsplit('/').next().unwrap_or_default().contains('.'))
        || plain.first().is_some_and(|path| path.as_str() == ".");
    if matches!(base, "node" | "nodejs") && entry {
        return Some("js");
    }
    plain.iter().find_map(|word| listed(&format!("{base} {word}"))).or_else(|| listed(base))
}

fn is_of(path: &str, kinds: &str) -> bool {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let fits = |entry: &str| match (entry.strip_suffix('*'), entry.strip_suffix('/')) {
        (Some(start), _) => name.starts_with(start),
        (_, Some(parent)) => folder.rsplit('/').next() == Some(parent),
        _ if entry.starts_with('.') => name.ends_with(entry),
        _ => name == entry,
    };
    kinds.split_whitespace().any(|kind| file_kind(kind).split_whitespace().any(fits))
}

/// The folders that commands run in now, absolute; none where one of them is not known.
fn here(eval: &Eval<'_>) -> Vec<String> {
    if eval.dirs.iter().any(|dir| !matches!(dir, Dir::Start(_))) {
        return Vec::new();
    }
    absolute(eval, ".")
}

fn absolute(eval: &Eval<'_>, path: &str) -> Vec<String> {
    let start = eval.start_dir().unwrap_or_default();
    let place = |place: String| {
        let whole = if place.starts_with('/') { place } else { format!("{start}/{place}") };
        whole.trim_end_matches(['/', '.']).to_owned()
    };
    eval.places(path).into_iter().map(place).collect()
}

/// Reads one file as what it is.
fn file(eval: &mut Eval<'_>, path: &str, text: &str, span: Span) {
    let name = path.rsplit('/').next().unwrap_or_default();
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    let script =
        |eval: &mut Eval<'_>, base: &str| languages::script(eval, base, path, text, span, None, Origin::Project);
    match (name, ending) {
        (".mcp.json" | "settings.json", _) => servers(eval, path, text, span),
        ("package.json" | "composer.json", _) => {
            package_scripts(eval, text, span);
            fetched(eval, text, span);
        }
        ("Cargo.toml" | "pyproject.toml" | "Pipfile" | "go.mod", _) => fetched(eval, text, span),
        _ if ending == "txt" => fetched(eval, text, span),
        (_, "ipynb") => notebook(eval, text, span),
        ("Makefile" | "makefile" | "GNUmakefile", _) | (_, "mk") => followed(eval, "make", path, text, span),
        ("justfile" | "Justfile" | ".justfile", _) | (_, "just") => followed(eval, "just", path, text, span),
        ("config" | ".gitconfig" | "gitconfig" | ".gitmodules", _) => git_code::settings(eval, text, span),
        ("Rakefile" | "Gemfile" | "Guardfile" | "Capfile" | "Vagrantfile", _) | (_, "rb" | "rake" | "gemspec") => {
            script(eval, "ruby");
        }
        (_, "py" | "pth") => script(eval, "python3"),
        (_, "js" | "mjs" | "cjs" | "jsx" | "ts" | "mts" | "cts" | "tsx" | "vue" | "svelte" | "astro") => {
            script(eval, "node");
        }
        (_, "php") => script(eval, "php"),
        (_, "lua") => script(eval, "lua"),
        (_, "sh" | "bash") => followed(eval, "sh", path, text, span),
        (_, "") if !name.contains("file") || text.starts_with("#!") => followed(eval, "", path, text, span),
        _ if name.starts_with("Dockerfile") || name.starts_with("Containerfile") || ending == "dockerfile" => {
            container(eval, text, span);
        }
        (
            _,
            "toml" | "ini" | "cfg" | "yml" | "yaml" | "json" | "xml" | "txt" | "cmake" | "build" | "ninja" | "gradle"
            | "sbt" | "tf" | "hcl" | "tofu" | "csproj" | "targets" | "props" | "exp" | "tcl" | "gp" | "inc",
        )
        | (_, "") => configured(eval, text, span),
        _ => source(eval, text, span),
    }
}

/// A file of settings: all of it but comments may name a command or a path.
fn configured(eval: &mut Eval<'_>, text: &str, span: Span) {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with(['#', ';']) && !line.contains("://"));
    let plain: Vec<&str> = lines.collect();
    for piece in plain.chunks(64).take(MAX_PIECES) {
        eval.unknown_use(UnknownUseKind::Text, vec![text_word(&piece.join("\n"), span)], span);
    }
}

/// The servers that a project names: the programs that start them, in its folder.
fn servers(eval: &mut Eval<'_>, path: &str, text: &str, span: Span) {
    let Ok(file) = writ_core::json::parse_with(text.as_bytes(), writ_core::json::Limits::FOREIGN) else {
        return configured(eval, text, span);
    };
    // Clients keep them by project, too, and settings beside the file's folder.
    let projects = file.get("projects").and_then(Value::as_object).into_iter().flat_map(Object::iter);
    let scopes = projects.map(|(_, project)| project).chain([&file]);
    let all = scopes.filter_map(|scope| scope.get("mcpServers")?.as_object()).flat_map(Object::iter);
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let folder = folder.rsplit_once('/').filter(|(_, name)| name.starts_with('.')).map_or(folder, |(above, _)| above);
    eval.dirs = vec![Dir::Start(folder.to_owned())];
    for (_, server) in all.take(MAX_PIECES) {
        let args = server.get("args").and_then(Value::as_array).unwrap_or_default();
        let words = server.get("command").into_iter().chain(args).filter_map(Value::as_str);
        let words: Vec<Word> = words.map(|word| text_word(word, span)).collect();
        if !words.is_empty() {
            eval.inner(words, &[], "writ", span, &Input::None);
        }
    }
}

/// A list of dependencies: the hosts that they are fetched from.
fn fetched(eval: &mut Eval<'_>, text: &str, span: Span) {
    const TELLS: [&str; 6] = ["homepage", "repository", "documentation", "$schema", "bugs", "funding"];
    let mut about = false;
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with(['#', '/'])) {
        // What such a member holds runs to its closing brace.
        let tells =
            TELLS.iter().any(|word| line.trim_start_matches('"').starts_with(word)) || line.starts_with("\"url\"");
        about = (about || tells && line.ends_with('{')) && !line.starts_with('}');
        if about || tells {
            continue;
        }
        for target in settings::hosts_in(line, span) {
            if matches!(target, NetTarget::Url(_)) {
                eval.net(target, span);
            }
        }
    }
}

/// A notebook: the code of its cells, and lines that begin with `!`.
fn notebook(eval: &mut Eval<'_>, text: &str, span: Span) {
    let parsed = writ_core::json::parse_with(text.as_bytes(), writ_core::json::Limits::FOREIGN).ok();
    let Some(cells) = parsed.as_ref().and_then(|book| book.get("cells")?.as_array()) else {
        return eval.unknown_use(UnknownUseKind::Text, vec![text_word(text, span)], span);
    };
    for cell in cells.iter().take(MAX_PIECES).filter_map(|cell| cell.get("source")) {
        let source: String = match cell.as_array() {
            Some(lines) => lines.iter().filter_map(|line| line.as_str()).collect(),
            None => cell.as_str().unwrap_or_default().to_owned(),
        };
        for line in source.lines().filter_map(|line| line.trim_start().strip_prefix(['!', '%'])) {
            eval.code(&text_word(line.trim_start_matches("sx "), span), None, "notebook");
        }
        let code: Vec<&str> = source.lines().filter(|line| !line.trim_start().starts_with(['!', '%'])).collect();
        languages::script(eval, "python3", "notebook", &code.join("\n"), span, None, Origin::Project);
    }
}

/// A program's text: what stands in quotes on a line that runs or touches something.
fn source(eval: &mut Eval<'_>, text: &str, span: Span) {
    let mut pieces = 0;
    for line in text.lines() {
        let lower = line.to_ascii_lowercase();
        let runs = RUNS.iter().any(|word| lower.contains(word));
        let touches = TOUCHES.iter().any(|word| lower.contains(word));
        if let Some((_, rest)) = line.split_once("go:generate ") {
            eval.unknown_use(UnknownUseKind::Text, vec![text_word(rest, span)], span);
        }
        for quoted in line.split(['"', '`']).skip(1).step_by(2) {
            if pieces > MAX_PIECES || quoted.is_empty() {
                continue;
            }
            pieces += 1;
            if runs {
                eval.unknown_use(UnknownUseKind::Text, vec![text_word(quoted, span)], span);
            }
            if (touches || quoted.contains('/')) && !quoted.contains("://") {
                eval.unknown_use(UnknownUseKind::Operands, vec![text_word(quoted, span)], span);
            }
        }
    }
}

/// A Dockerfile: the image that it builds on, and what its steps run there.
fn container(eval: &mut Eval<'_>, text: &str, span: Span) {
    let joined = text.replace("\\\n", " ");
    for line in joined.lines().map(str::trim) {
        let Some((verb, rest)) = line.split_once(char::is_whitespace) else { continue };
        match verb.to_ascii_uppercase().as_str() {
            "FROM" => {
                let image = rest.split_whitespace().find(|word| !word.starts_with("--")).unwrap_or_default();
                let words = ["docker", "pull", image].map(|word| text_word(word, span));
                if image != "scratch" && !image.is_empty() && !image.contains('$') {
                    eval.inner(words.to_vec(), &[], "docker build", span, &Input::None);
                }
            }
            "RUN" => {
                eval.remote += 1;
                let code =
                    rest.split_whitespace().skip_while(|word| word.starts_with("--")).collect::<Vec<_>>().join(" ");
                eval.code(&text_word(&code, span), None, "docker build");
                eval.remote -= 1;
            }
            "COPY" | "ADD" => {
                let words: Vec<Word> = rest.split_whitespace().map(|word| text_word(word, span)).collect();
                let sources: Vec<Word> = words.iter().filter(|word| !is_flag(word)).cloned().collect();
                if let Some((_, sources)) = sources.split_last() {
                    eval.unknown_use(UnknownUseKind::Operands, sources.to_vec(), span);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_files() {
        for (path, kinds) in [
            ("/r/a.test.js", "js"),
            ("/r/package.json", "js"),
            ("/r/.git/hooks/pre-commit", "hooks"),
            ("/r/Dockerfile.dev", "docker"),
            ("/r/src/main.rs", "c rust"),
        ] {
            assert!(is_of(path, kinds), "{path}");
        }
        for (path, kinds) in [("/r/a.json", "js"), ("/r/README.md", "js python rust go"), ("/r/commit", "hooks")] {
            assert!(!is_of(path, kinds), "{path}");
        }
    }
}
