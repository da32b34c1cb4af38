//! Programs that look into the files of a tree: `grep -r`, `rg`, `ag`, `ack`. Which files they read, and which they leave out.

use crate::action::Access;
use crate::eval::Eval;
use crate::listing::{Ignores, Listing, Printed, Test};
use crate::shape::text_word;
use crate::text::{Text, tidy};
use crate::word::{Part, Word};

/// Endings of the types that `rg -t` knows, as far as they are in daily use.
const TYPES: [(&str, &str); 30] = [
    ("c", "*.c *.h *.H *.cats"),
    ("cpp", "*.cpp *.hpp *.cc *.hh *.cxx *.hxx *.h *.C *.H *.inl *.h++ *.c++"),
    ("cs", "*.cs"),
    ("csharp", "*.cs"),
    ("css", "*.css *.scss"),
    ("csv", "*.csv"),
    ("docker", "*Dockerfile*"),
    ("go", "*.go"),
    ("graphql", "*.graphql *.graphqls"),
    ("html", "*.htm *.html *.ejs"),
    ("java", "*.java *.jsp *.jspx *.properties"),
    ("js", "*.js *.jsx *.vue *.cjs *.mjs"),
    ("json", "*.json *.sarif composer.lock"),
    ("kotlin", "*.kt *.kts"),
    ("lua", "*.lua"),
    ("make", "[Gg][Nn][Uu]makefile [Mm]akefile [Gg][Nn][Uu]makefile.* [Mm]akefile.* *.mk *.mak"),
    ("markdown", "*.markdown *.md *.mdown *.mdwn *.mkd *.mkdn *.mdx"),
    ("md", "*.markdown *.md *.mdown *.mdwn *.mkd *.mkdn *.mdx"),
    ("php", "*.php *.php3 *.php4 *.php5 *.php7 *.php8 *.pht *.phtml"),
    ("py", "*.py *.pyi"),
    ("python", "*.py *.pyi"),
    ("ruby", "*.rb *.rbw *.gemspec Gemfile Rakefile config.ru .irbrc"),
    ("rust", "*.rs"),
    ("sql", "*.sql *.psql"),
    ("swift", "*.swift"),
    ("tf", "*.tf *.tf.json *.tfvars *.tfvars.json *.terraformrc terraform.rc *.tfrc"),
    ("toml", "*.toml Cargo.lock"),
    ("ts", "*.ts *.tsx *.cts *.mts"),
    ("txt", "*.txt"),
    ("yaml", "*.yaml *.yml"),
];

/// The files that a search reads, one word a root.
pub fn read(eval: &mut Eval<'_>, base: &str, arguments: &[Word], roots: &[Word], here: Word) -> Vec<Word> {
    let (test, hidden, ignores) = match base {
        "rg" | "ripgrep" => rg(arguments),
        "ag" => (
            Test::All(files(arguments, 'f', "--follow")).and(Test::Here),
            has(arguments, 'u', &["--unrestricted", "--hidden"]),
            !has(arguments, 'u', &["--unrestricted", "--skip-vcs-ignores"]),
        ),
        "ack" => (Test::All(files(arguments, '\0', "--follow")).and(Test::Here), true, false),
        _ => (grep(arguments), true, false),
    };
    let ignores = if ignores { Ignores::Search } else { Ignores::Nothing };
    let printed = if roots.is_empty() { Printed::Relative } else { Printed::Path };
    let roots = if roots.is_empty() { &[here][..] } else { roots };
    let mut out = Vec::new();
    for root in roots {
        let (folder, dirs, test) = (root.clone(), eval.dirs.clone(), test.clone());
        let listing = Listing { folder, dirs, test, tree: true, hidden, ignores, printed };
        out.push(Word { parts: vec![eval.listing(listing)], span: root.span });
    }
    out
}

/// The values of an option in each of its spellings.
fn values(arguments: &[Word], short: Option<char>, longs: &[&str]) -> Vec<String> {
    let mut out = Vec::new();
    let mut words = arguments.iter().map(|word| word.literal().unwrap_or_default()).peekable();
    while let Some(text) = words.next() {
        if text == "--" {
            break;
        }
        let glued = longs.iter().find_map(|long| text.strip_prefix(long)?.strip_prefix('='));
        let letter = short.filter(|_| text.starts_with('-') && !text.starts_with("--"));
        if let Some(value) = glued {
            out.push(value.to_owned());
        } else if longs.contains(&text.as_str()) {
            out.extend(words.next());
        } else if let Some((_, value)) = letter.and_then(|letter| text.split_once(letter)) {
            if value.is_empty() { out.extend(words.next()) } else { out.push(value.trim_start_matches('=').to_owned()) }
        }
    }
    out
}

fn has(arguments: &[Word], short: char, longs: &[&str]) -> bool {
    arguments.iter().filter_map(Word::literal).any(|text| {
        longs.contains(&text.as_str()) || (text.starts_with('-') && !text.starts_with("--") && text.contains(short))
    })
}

/// Every file; and, where no option has links followed, only what is none.
fn files(arguments: &[Word], short: char, long: &str) -> Vec<Test> {
    // What is not known may be the option. Options are known by their beginnings, too.
    let may = |text: &String| text.len() > 3 && long.starts_with(text.as_str());
    let follows =
        has(arguments, short, &[long]) || arguments.iter().any(|word| word.literal().as_ref().is_none_or(may));
    let link = (!follows).then(|| Test::Not(Box::new(Test::Link)));
    [Test::Not(Box::new(Test::Folder))].into_iter().chain(link).collect()
}

fn names(patterns: &[String]) -> Test {
    Test::Either(patterns.iter().map(|pattern| pattern_test(pattern, false)).collect())
}

fn pattern_test(pattern: &str, folded: bool) -> Test {
    let path = pattern.trim_end_matches('/').contains('/');
    let text = if path {
        format!("*{}", pattern.trim_start_matches("**").trim_start_matches('/'))
    } else {
        pattern.to_owned()
    };
    Test::Name { pattern: text.trim_end_matches('/').to_owned(), path, folded }
}

/// Names and paths that are left out; a path hangs off the folder that the program runs in, or off any (`anywhere`).
fn exclusion(patterns: &[String], anywhere: bool) -> Test {
    let one = |pattern: &String| {
        let pattern = pattern.trim_end_matches('/');
        let free = pattern.strip_prefix("**/");
        let pattern = free.unwrap_or(pattern);
        let name = |pattern: String, path| Test::Name { pattern, path, folded: false };
        if !pattern.contains('/') {
            return vec![name(pattern.to_owned(), false)];
        }
        let plain = pattern.trim_start_matches('/');
        let mut out = vec![name(plain.to_owned(), true), name(format!("./{plain}"), true)];
        if anywhere || free.is_some() {
            out.push(name(format!("*/{plain}"), true));
        }
        out
    };
    Test::Either(patterns.iter().flat_map(one).collect())
}

/// A folder of such a name is not looked into.
fn pruned(patterns: &[String], anywhere: bool) -> Test {
    Test::Not(Box::new(Test::All(vec![Test::Folder, exclusion(patterns, anywhere), Test::Prune])))
}

fn grep(arguments: &[Word]) -> Test {
    let (only, without) = (values(arguments, None, &["--include"]), values(arguments, None, &["--exclude"]));
    let folders = values(arguments, None, &["--exclude-dir"]);
    let mut tests = Vec::new();
    if !folders.is_empty() {
        tests.push(pruned(&folders, true));
    }
    tests.extend(files(arguments, 'R', "--dereference-recursive"));
    if !only.is_empty() {
        tests.push(names(&only));
    }
    if !without.is_empty() {
        tests.push(Test::Not(Box::new(exclusion(&without, true))));
    }
    tests.push(Test::Here);
    Test::All(tests)
}

/// What `rg` with these arguments looks for: the test of its files, whether hidden ones are among them, and whether ignored
/// ones are left out.
pub fn ripgrep(arguments: &[String]) -> (Test, bool, bool) {
    let words: Vec<Word> = arguments.iter().map(|text| text_word(text, writ_core::Span { start: 0, end: 0 })).collect();
    rg(&words)
}

/// Test, hidden files too, and whether ignored ones are left out. A glob that is asked for outranks all that.
fn rg(arguments: &[Word]) -> (Test, bool, bool) {
    let (without, only): (Vec<String>, Vec<String>) =
        values(arguments, Some('g'), &["--glob", "--iglob"]).into_iter().partition(|glob| glob.starts_with('!'));
    let without: Vec<String> = without.iter().map(|glob| glob.trim_start_matches('!').to_owned()).collect();
    let mut tests = Vec::new();
    if !without.is_empty() {
        tests.push(pruned(&without, false));
        tests.push(Test::Not(Box::new(exclusion(&without, false))));
    }
    tests.extend(files(arguments, 'L', "--follow"));
    if !only.is_empty() {
        tests.push(Test::Either(only.iter().map(|glob| pattern_test(glob, true)).collect()));
    }
    let types = values(arguments, Some('t'), &["--type"]);
    let known: Option<Vec<&str>> =
        types.iter().map(|kind| TYPES.iter().find(|(name, _)| name == kind).map(|(_, globs)| *globs)).collect();
    if let Some(globs) = known.filter(|globs| !globs.is_empty()) {
        let globs: Vec<String> = globs.iter().flat_map(|globs| globs.split(' ')).map(str::to_owned).collect();
        tests.push(names(&globs));
    }
    tests.push(Test::Here);
    let open = |least: usize| {
        let count: usize = arguments
            .iter()
            .filter_map(Word::literal)
            .filter(|text| text.starts_with('-') && !text.starts_with("--"))
            .map(|text| text.matches('u').count())
            .sum();
        let long = arguments.iter().filter_map(Word::literal).filter(|text| text.starts_with("--unr")).count();
        count + long >= least
    };
    let unignored = arguments.iter().filter_map(Word::literal).any(|text| text.starts_with("--no-ig"));
    let hidden = open(2) || has(arguments, '.', &["--hidden"]) || !only.is_empty();
    (Test::All(tests), hidden, !(open(1) || unignored || !only.is_empty()))
}

/// What a search prints: `None` where that is more than names of files.
pub fn printed(eval: &mut Eval<'_>, base: &str, arguments: &[Word], roots: &[Word], here: Word) -> Option<Text> {
    let files = arguments.iter().filter_map(Word::literal).any(|text| text == "--files");
    let matching = has(arguments, 'l', &["--files-with-matches"]) || has(arguments, 'L', &["--files-without-match"]);
    if !files && !matching {
        return None;
    }
    let found = read(eval, base, arguments, roots, here);
    let lines = found.into_iter().flat_map(|word| word.parts.into_iter().chain([Part::Text("\n".to_owned())]));
    let lines = tidy(lines.collect());
    Some(if files { lines } else { eval.narrowed(&lines, None) })
}

/// Puts the files of a search on record.
pub fn record(eval: &mut Eval<'_>, base: &str, access: Access, arguments: &[Word], roots: &[&Word], here: Word) {
    let roots: Vec<Word> =
        roots.iter().filter(|root| root.literal().as_deref() != Some("-")).map(|root| (*root).clone()).collect();
    for file in read(eval, base, arguments, &roots, here) {
        eval.file(file, access, false);
    }
}

/// The folder that a search without operands begins in.
pub fn here(span: writ_core::Span) -> Word {
    text_word(".", span)
}
