//! `ln`, `cp`, `mv` and `install`: links and copies that stand for something else later in the line.

use crate::eval::Eval;
use crate::shape::is_flag;
use crate::word::Word;

/// Programs that act on a link itself.
pub const ON_LINKS: [&str; 7] = ["rm", "unlink", "ln", "mv", "readlink", "rmdir", "git"];

/// Notes what `ln`, `cp`, `mv` and `install` make.
pub fn note(eval: &mut Eval<'_>, base: &str, arguments: &[Word]) {
    if !matches!(base, "ln" | "cp" | "mv" | "install" | "link") {
        return;
    }
    let texts: Vec<String> = arguments.iter().filter_map(Word::place).collect();
    let symbolic = texts
        .iter()
        .any(|text| text == "--symbolic" || (text.starts_with('-') && !text.starts_with("--") && text.contains('s')));
    let here = texts
        .iter()
        .any(|text| text == "--relative" || (text.starts_with('-') && !text.starts_with("--") && text.contains('r')));
    let given =
        texts.iter().zip(texts.iter().skip(1)).find(|(flag, _)| matches!(flag.as_str(), "-t" | "--target-directory"));
    let given = given.map(|(_, folder)| folder.clone());
    let given =
        given.or_else(|| texts.iter().find_map(|text| text.strip_prefix("--target-directory=")).map(str::to_owned));
    let mut operands: Vec<String> = arguments.iter().filter(|word| !is_flag(word)).filter_map(Word::place).collect();
    let target = match given {
        Some(folder) => {
            operands.retain(|operand| *operand != folder);
            folder
        }
        None if operands.len() > 1 => operands.pop().unwrap_or_default(),
        None => ".".to_owned(),
    };
    for source in operands {
        let name = source.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        // The target may be a folder, or the new name.
        for to in [target.clone(), format!("{target}/{name}")] {
            let parent = to.trim_end_matches('/').rsplit_once('/').map_or("", |(parent, _)| parent);
            let relative = base == "ln" && symbolic && !here && !source.starts_with('/');
            let from = if relative { format!("{parent}/{source}") } else { source.clone() };
            let from = if relative && parent.is_empty() { source.clone() } else { from };
            for (from, to) in eval.places(&from).into_iter().zip(eval.places(&to)) {
                eval.note_link(from, to, matches!(base, "ln" | "link"));
            }
        }
    }
}
