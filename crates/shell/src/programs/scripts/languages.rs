//! Code in a language with a reader of its own, in a line or in a file: what is harmless is followed, what is not stays open.

use writ_core::Span;

use crate::action::{Access, NetTarget, UnknownUseKind, UnresolvedKind};
use crate::code::{Around, Language, Reading, read, started, table};
use crate::eval::Eval;
use crate::eval::input::Input;
use crate::options::Options;
use crate::programs::entries::words::{Effect, List};
use crate::programs::foreign::mentions;
use crate::programs::scripts;
use crate::shape::{literal_prefix, text_word};
use crate::word::Word;

/// What runs something, wherever it stands in a line of code.
pub const RUNS: [&str; 14] = [
    "exec", "system", "command", "spawn", "popen", "process", "shell", "run(", "run ", "sh(", "cmd", "generate",
    "pipe", "launch",
];
/// Most lines of one file that run something.
const MAX_CALLS: usize = 256;

/// Code in an option or an operand of a program. `arguments` are all of the program's words, `options` how they were read.
pub(crate) fn inline(eval: &mut Eval<'_>, base: &str, what: &str, code: &Word, arguments: &[Word], options: &Options) {
    let operands: Vec<Word> = options.operands.iter().filter_map(|at| arguments.get(*at)).cloned().collect();
    let before = options.operands.first().copied().unwrap_or(arguments.len());
    let switches = Language::of(base)
        .and_then(|language| switches(language, arguments.get(..before).unwrap_or_default(), options));
    follow(eval, base, what, code, &operands, switches);
}

/// Code on standard input.
pub(crate) fn standard_input(
    eval: &mut Eval<'_>,
    base: &str,
    text: &str,
    span: Span,
    arguments: &[Word],
    options: &Options,
) {
    let code = text_word(text, span);
    inline(eval, base, &format!("{base} <input"), &code, arguments, options);
}

/// `switches` is `None` where an option does more than run the code.
fn follow(eval: &mut Eval<'_>, base: &str, what: &str, code: &Word, operands: &[Word], switches: Option<String>) {
    let open = |eval: &mut Eval<'_>| eval.unresolved_with(UnresolvedKind::Code, what, code.span, mentions(code));
    let (Some(language), Some(text)) = (Language::of(base), code.literal()) else { return open(eval) };
    let around = Around { arguments: operands, home: eval.home(), switches: switches.clone().unwrap_or_default() };
    let reading = read(language, &text, &around);
    if !reading.harmless || switches.is_none() {
        open(eval);
    }
    apply(eval, base, reading, code.span);
}

/// Who wrote a script, and who runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// This line wrote it: it is judged like code in the line.
    Line,
    /// The agent wrote it before: it is judged by what it names.
    Earlier,
    /// The same, run by a program that runs a project's files: a name that may be anything's says nothing.
    Project,
}

/// A script file's text.
pub(crate) fn script(
    eval: &mut Eval<'_>,
    base: &str,
    path: &str,
    text: &str,
    span: Span,
    arguments: Option<Vec<Word>>,
    origin: Origin,
) {
    let what = format!("{base} {path}");
    let earlier = origin != Origin::Line;
    let mut mentioned = mentions(&text_word(text, span));
    if origin == Origin::Project {
        mentioned.retain(|word| word.literal().is_some_and(|text| text.contains('/') && !text.contains("://")));
    }
    let Some(language) = Language::of(base) else {
        return if earlier {
            eval.out.mentions.extend(mentioned);
        } else {
            eval.unresolved_with(UnresolvedKind::Script, &what, span, mentioned);
        };
    };
    // The first argument is the script's own name; `process.argv` holds it, `sys.argv[1]` is the one behind.
    let skip = usize::from(language != Language::JavaScript);
    let operands: Vec<Word> = arguments.unwrap_or_default().into_iter().skip(skip).collect();
    let around = Around { arguments: &operands, home: eval.home(), switches: String::new() };
    // To JavaScript a first line that names its interpreter is no comment.
    let plain = text.strip_prefix("#!").filter(|_| language == Language::JavaScript);
    let plain = plain.map_or(text, |rest| rest.split_once('\n').map_or("", |(_, rest)| rest));
    let mut reading = read(language, plain, &around);
    if !reading.harmless && earlier {
        started::add(language, plain, &mut reading);
    }
    if !reading.harmless && !earlier {
        eval.unresolved_with(UnresolvedKind::Code, &what, span, mentioned);
    } else if !reading.harmless {
        if reading.computes {
            eval.unresolved(UnresolvedKind::Code, &what, span);
        }
        eval.out.mentions.extend(mentioned);
        if earlier {
            walked(eval, text, span);
            calls(eval, text, span);
        }
    }
    apply(eval, base, reading, span);
}

/// Folders whose files a script walks through and reads: everything below may be read.
fn walked(eval: &mut Eval<'_>, text: &str, span: Span) {
    const WALKS: [&str; 17] = [
        "os.walk(",
        "listdir(",
        "scandir(",
        "iterdir(",
        "rglob(",
        "readdirSync(",
        "readdir(",
        "Dir.children(",
        "Dir.entries(",
        "Dir.each_child(",
        "Dir.foreach(",
        "Find.find(",
        "opendir(",
        "opendir ",
        "walkSync(",
        "RecursiveDirectoryIterator(",
        "Deno.readDir(",
    ];
    const READS: [&str; 7] =
        ["open(", "read_text(", "read_bytes(", "readFile", "File.read", "file_get_contents", "readTextFile"];
    if !READS.iter().any(|read| text.contains(read)) {
        return;
    }
    for rest in
        WALKS.iter().flat_map(|walk| text.match_indices(walk)).filter_map(|(at, walk)| text.get(at + walk.len()..))
    {
        let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
        let folder = quote.and_then(|quote| rest.get(1..)?.split(quote).next());
        let folder = folder.or_else(|| rest.starts_with(')').then_some("."));
        folder.into_iter().for_each(|folder| eval.file(text_word(folder, span), Access::Read, true));
    }
}

/// What a script that is not followed makes run: texts in quotes on lines that run something.
fn calls(eval: &mut Eval<'_>, text: &str, span: Span) {
    let runs = |line: &&str| {
        let lower = line.to_ascii_lowercase();
        RUNS.iter().any(|word| lower.contains(word)) || line.contains('`')
    };
    for line in text.lines().filter(runs).take(MAX_CALLS) {
        for quoted in line.split(['"', '`', '\'']).skip(1).filter(|quoted| quoted.len() > 1) {
            eval.unknown_use(UnknownUseKind::Command, vec![text_word(quoted, span)], span);
        }
    }
}

/// Puts on record what a piece of code touches and runs.
fn apply(eval: &mut Eval<'_>, base: &str, reading: Reading, span: Span) {
    let word = |parts| Word { parts, span };
    for (path, access, tree) in reading.files {
        eval.file(word(path), access, tree);
    }
    for url in reading.urls {
        eval.net(NetTarget::Url(word(url)), span);
    }
    for code in reading.shells {
        eval.code(&word(code), None, base);
    }
    eval.out.loads |= reading.loads;
    scripts::run_modules(eval, base, &reading.modules, span);
    for command in reading.commands {
        let words = command.into_iter().map(word).collect();
        eval.inner(words, &[], base, span, &Input::Unknown);
    }
}

/// The letters of the options before the code; `None` where one of them is not on the list.
fn switches(language: Language, words: &[Word], options: &Options) -> Option<String> {
    let name = language.name();
    let mut out = String::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let text = literal_prefix(word);
        let value = options.values.iter().any(|(_, _, value)| value == word);
        if text == "--" || !text.starts_with('-') || text.len() < 2 || value {
            continue;
        }
        let long = text.split('=').next().unwrap_or_default();
        if text.starts_with("--") {
            table::has(name, List::Options, long).then_some(())?;
            continue;
        }
        for (at, letter) in text.char_indices().skip(1) {
            let known = table::role(name, List::Options, &format!("-{letter}"))?;
            out.push(letter);
            if known == Effect::Harmless {
                continue;
            }
            // The rest of the word, or the next one, is its value.
            let glued = text.get(at + letter.len_utf8()..).unwrap_or_default();
            let value = match (known, glued) {
                (Effect::Code | Effect::Digits, _) => break,
                (_, "") => words.next()?.literal()?,
                (_, glued) => glued.to_owned(),
            };
            if !harmless(name, known, &value) {
                return None;
            }
            break;
        }
    }
    Some(out)
}

/// Whether an option's value does no more than its option says.
fn harmless(language: &'static str, effect: Effect, value: &str) -> bool {
    match effect {
        Effect::Word => value.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'),
        Effect::Module => {
            let (name, wanted) = value.split_once('=').unwrap_or((value, ""));
            let simple = wanted.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, ',' | '_' | ':'));
            simple && table::has(language, List::Requires, name.trim_start_matches('-'))
        }
        Effect::Separator => !value.contains("(?") && value.len() < 16 && !value.contains(['$', '@']),
        Effect::Setting => table::has(language, List::Settings, value.split('=').next().unwrap_or_default()),
        _ => false,
    }
}
