//! Arguments in a template of a shell line, each as one word, or one part of a word.
//!
//! Owns the reading of quotes in a template, as far as it takes to put a text between them. Refuses arguments where the shell would read
//! them again: in arithmetic, in `${…}`, in here-documents, backquotes, comments. Invariant: whatever an argument holds, the shell reads
//! the words of the template as if it held a letter.

use super::Malformed;

/// What an argument's place begins and ends with.
const BEGIN: &str = "UTCP_ARG_";
const END: &str = "_UTCP_END";
/// What no argument may stand beside: the shell reads a text there in other ways.
const OTHER: [(&str, &str); 4] =
    [("((", "arithmetic"), ("[[", "a test that may compute"), ("<<", "a here-document"), ("`", "backquotes")];

/// Where a part of a template stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Inside {
    /// `( … )`, `$( … )`.
    Parentheses,
    /// `'…'`.
    Single,
    /// `"…"`.
    Double,
    /// `$'…'`.
    Escaped,
    /// `${…}`.
    Braces,
    /// `# …`.
    Comment,
}

/// A text as one word that the shell reads as it is.
pub fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// A template with its arguments in their places. `braced` says that `${name}` is a place too, where `value` knows the name.
pub fn fill(
    template: &str,
    braced: bool,
    value: &mut dyn FnMut(&str) -> Option<Result<String, String>>,
) -> Result<String, String> {
    let (mut out, mut rest) = (String::new(), template);
    let (mut stack, mut begins, mut filled) = (Vec::<Inside>::new(), true, false);
    while let Some(first) = rest.chars().next() {
        if let Some((name, behind)) = place(rest, braced, value)? {
            let word = literal(&name);
            match stack.last() {
                None | Some(Inside::Parentheses) => out.push_str(&word),
                Some(Inside::Single) => out.push_str(&format!("'{word}'")),
                Some(Inside::Double) => out.push_str(&format!("\"{word}\"")),
                Some(Inside::Escaped | Inside::Braces | Inside::Comment) => {
                    return Err(
                        "an argument stands in a comment, in `${…}` or in `$'…'`, where none can be put".to_owned()
                    );
                }
            }
            (rest, begins, filled) = (behind, false, true);
            continue;
        }
        let taken = step(first, rest, begins, &mut stack)?;
        let (text, behind) = rest.split_at_checked(taken).unwrap_or((rest, ""));
        out.push_str(text);
        begins = matches!(first, ' ' | '\t' | '\n' | ';' | '|' | '&' | '(' | ')');
        rest = behind;
    }
    if !filled {
        return Ok(template.to_owned());
    }
    if let Some((_, what)) = OTHER.into_iter().find(|(mark, _)| template.contains(mark)) {
        return Err(format!("the command has {what}, beside which no argument can be put"));
    }
    stack.retain(|inside| *inside != Inside::Comment);
    if stack.is_empty() { Ok(out) } else { Err("a quote or parenthesis of the command does not end".to_owned()) }
}

/// An argument's text and what stands behind its place, where one begins here.
fn place<'a>(
    rest: &'a str,
    braced: bool,
    value: &mut dyn FnMut(&str) -> Option<Result<String, String>>,
) -> Result<Option<(String, &'a str)>, String> {
    let named = rest.strip_prefix(BEGIN).and_then(|rest| rest.split_once(END));
    if let Some((name, behind)) = named {
        let text = value(name)
            .unwrap_or_else(|| Err(format!("the argument `{name}` is not given, and the command needs it")))?;
        return checked(text).map(|text| Some((text, behind)));
    }
    let named = rest.strip_prefix("${").filter(|_| braced).and_then(|rest| rest.split_once('}'));
    let Some((name, behind)) = named else { return Ok(None) };
    match value(name) {
        Some(text) => checked(text?).map(|text| Some((text, behind))),
        None => Ok(None),
    }
}

fn checked(text: String) -> Result<String, String> {
    if text.contains('\0') {
        Err("an argument holds a zero byte, which no command can be given".to_owned())
    } else {
        Ok(text)
    }
}

/// How much of the template is read at once, and what it begins or ends.
fn step(first: char, rest: &str, begins: bool, stack: &mut Vec<Inside>) -> Result<usize, String> {
    let one = first.len_utf8();
    let escaped = || rest.chars().take(2).map(char::len_utf8).sum();
    match (stack.last().copied(), first) {
        (Some(Inside::Single), '\'') | (Some(Inside::Double), '"') | (Some(Inside::Escaped), '\'') => {
            stack.pop();
        }
        (Some(Inside::Comment), '\n') => {
            stack.pop();
        }
        (Some(Inside::Single | Inside::Comment), _) => {}
        (_, '\\') => return Ok(escaped()),
        (Some(Inside::Escaped), _) => {}
        (Some(Inside::Braces), '}') => {
            stack.pop();
        }
        (Some(Inside::Braces), '\'' | '"' | '$') => {
            return Err("a quote or `$` stands in `${…}`: where it ends cannot be told".to_owned());
        }
        (Some(Inside::Braces), _) => {}
        (_, '$') if rest.starts_with("$(") => {
            stack.push(Inside::Parentheses);
            return Ok(2);
        }
        (_, '$') if rest.starts_with("${") => {
            stack.push(Inside::Braces);
            return Ok(2);
        }
        (Some(Inside::Double), _) => {}
        (None | Some(Inside::Parentheses), '$') if rest.starts_with("$'") => {
            stack.push(Inside::Escaped);
            return Ok(2);
        }
        (None | Some(Inside::Parentheses), '\'') => stack.push(Inside::Single),
        (None | Some(Inside::Parentheses), '"') => stack.push(Inside::Double),
        (None | Some(Inside::Parentheses), '#') if begins => stack.push(Inside::Comment),
        (None | Some(Inside::Parentheses), '(') => stack.push(Inside::Parentheses),
        (Some(Inside::Parentheses), ')') => {
            stack.pop();
        }
        (None | Some(Inside::Parentheses), _) => {}
    }
    Ok(one)
}

/// The same, with the place of the command in its description.
pub fn fill_at(
    pointer: &str,
    template: &str,
    braced: bool,
    value: &mut dyn FnMut(&str) -> Option<Result<String, String>>,
) -> Result<String, Malformed> {
    fill(template, braced, value).map_err(|why| Malformed::new(pointer, why))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    fn filled(template: &str, text: &str) -> Result<String, String> {
        fill(template, false, &mut |_| Some(Ok(text.to_owned())))
    }

    /// What bash prints for a line.
    fn bash(line: &str) -> String {
        let out = Command::new("bash").args(["-c", line]).output().unwrap();
        String::from_utf8(out.stdout).unwrap()
    }

    const X: &str = "UTCP_ARG_x_UTCP_END";
    const ATTACKS: [&str; 8] = [
        "\"; touch pwned; \"",
        "'; touch pwned; '",
        "$(touch pwned)",
        "`touch pwned`",
        "a\ntouch pwned",
        "\\",
        "*",
        "{a,b}",
    ];

    #[test]
    fn an_argument_is_one_word_wherever_it_stands() {
        for attack in ATTACKS {
            for (template, before, behind) in [
                (format!("printf '[%s]' {X}"), "[", "]"),
                (format!("printf '[%s]' \"{X}\""), "[", "]"),
                (format!("printf '[%s]' '{X}'"), "[", "]"),
                (format!("printf '[%s]' \"a {X} b\""), "[a ", " b]"),
                (format!("printf '[%s]' \"$(printf %s {X})\""), "[", "]"),
                (format!("printf '[%s]' \"$(printf %s \"{X}\")\" # it's"), "[", "]"),
                (format!("printf '[%s]' a\\'{X}\\\"b"), "[a'", "\"b]"),
                (format!("printf '[%s]' $'\\''{X}"), "['", "]"),
                (format!("printf '[%s]' \"${{HOME+}}{X}\""), "[", "]"),
                (format!("printf '[%s]' {{{X}}}"), "[{", "}]"),
            ] {
                let line = filled(&template, attack).unwrap_or_else(|why| panic!("{template}: {why}"));
                assert_eq!(bash(&line), format!("{before}{attack}{behind}"), "{line}");
            }
        }
    }

    #[test]
    fn where_the_shell_reads_again_nothing_is_put() {
        for template in [
            format!("echo $(({X}))"),
            format!("(( {X} ))"),
            format!("[[ {X} -eq 1 ]]"),
            format!("cat <<E\n{X}\nE"),
            format!("cat <<< {X}"),
            format!("echo `echo {X}`"),
            format!("echo ${{a:-{X}}}"),
            format!("echo $'{X}'"),
            format!("true # {X}"),
            format!("echo '{X}"),
            format!("echo \"{X}"),
            format!("echo $(echo {X}"),
            format!("echo \"${{a:-\"{X}\"}}\""),
        ] {
            assert!(filled(&template, "x").is_err(), "{template}");
        }
        assert!(filled(&format!("echo {X}"), "a\0b").is_err());
        assert_eq!(filled("echo `date` $((1 + 1)) # it's", "x").unwrap(), "echo `date` $((1 + 1)) # it's");
    }

    proptest! {
        #[test]
        fn any_text_comes_back(text in "[^\\x00]{0,40}") {
            for template in [format!("printf %s {X}"), format!("printf %s \"{X}\""), format!("printf %s '{X}'")] {
                prop_assert_eq!(bash(&filled(&template, &text).unwrap()), text.clone());
            }
        }
    }
}
