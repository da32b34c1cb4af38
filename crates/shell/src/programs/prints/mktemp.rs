//! `mktemp`: the name that it prints, as far as that is certain.
//!
//! Its letters are chosen so that nothing has the name yet, which nobody who writes a line can foresee: such a place is no
//! file that a rule could mean. What fails prints nothing, so this is said only of the folders that are surely there.

use crate::eval::Eval;
use crate::text::{Text, tidy};
use crate::word::{Part, Source, Word};

/// Fewest letters that cannot be tried out one after the other.
const LETTERS: usize = 4;

/// The options and the template of `mktemp`.
#[derive(Default)]
struct Flags {
    folder: Option<Text>,
    template: Option<Text>,
    suffix: String,
    /// The folder for temporary files, in front of a template too.
    temporary: bool,
}

impl Flags {
    fn of(arguments: &[Word]) -> Option<Self> {
        let mut out = Self::default();
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let text = word.literal();
            let Some(flag) = text.as_deref().filter(|text| text.starts_with('-')) else {
                if out.template.replace(word.parts.clone()).is_some() {
                    return None;
                }
                continue;
            };
            match flag.split_once('=').unwrap_or((flag, "")) {
                ("-p", _) => out.folder = Some(words.next()?.parts.clone()),
                ("--suffix", "") => out.suffix = words.next()?.literal()?,
                ("--suffix", suffix) => suffix.clone_into(&mut out.suffix),
                ("--tmpdir", "") => out.temporary = true,
                ("--tmpdir", folder) => out.folder = Some(vec![Part::Text(folder.to_owned())]),
                ("--directory" | "--dry-run" | "--quiet", _) => {}
                (letters, "") if letters.chars().skip(1).all(|c| "dqtu".contains(c)) && letters.len() > 1 => {
                    out.temporary |= letters.contains('t');
                }
                _ => return None,
            }
        }
        out.temporary |= out.template.is_none();
        Some(out)
    }
}

/// `mktemp [-d] [-p folder] [-t] [template]`
pub fn made_name(eval: &mut Eval<'_>, arguments: &[Word]) -> Option<Text> {
    let flags = Flags::of(arguments)?;
    let mut template = flags.template.unwrap_or_else(|| vec![Part::Text("tmp.XXXXXXXXXX".to_owned())]);
    let last = if let Some(Part::Text(last)) = template.pop() { last } else { return None };
    let (before, rest) = last.split_at(last.find("XXX")?);
    let after = rest.trim_start_matches('X');
    let mut out = match flags.folder {
        Some(folder) => folder,
        None if flags.temporary => temporary(eval)?,
        None => Text::new(),
    };
    if !out.is_empty() {
        out.push(Part::Text("/".to_owned()));
    }
    out.extend(template);
    out.push(Part::Text(before.to_owned()));
    let out = tidy(out);
    let chosen = is_there(&out) && rest.len() - after.len() >= LETTERS;
    let source = if chosen { Source::Fresh } else { Source::Number };
    let end = Part::Text(format!("{after}{}\n", flags.suffix));
    Some(tidy([out.as_slice(), &[Part::Unknown(source), end]].concat()))
}

/// The folder for temporary files.
fn temporary(eval: &mut Eval<'_>) -> Option<Text> {
    let mut values = eval.lookup("TMPDIR", None)?;
    let value = values.pop().filter(|_| values.is_empty())?.concat();
    Some(if value.is_empty() { vec![Part::Text("/tmp".to_owned())] } else { value })
}

/// Whether a name that begins so lies in a folder for temporary files, or in one that was made there.
fn is_there(name: &Text) -> bool {
    let (first, made) = match name.as_slice() {
        [Part::Text(first)] => (first, ""),
        [Part::Text(first), Part::Unknown(Source::Fresh), Part::Text(made)] => (first, made.as_str()),
        _ => return false,
    };
    let first = ["/tmp/", "/var/tmp/"].iter().find_map(|folder| first.strip_prefix(folder));
    let plain = |text: &str| !text.trim_start_matches('/').contains('/');
    first.is_some_and(plain) && plain(made)
}
