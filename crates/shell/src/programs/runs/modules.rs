//! `python -m`: modules that are programs of their own.

use crate::action::{Access, UnknownUseKind, UnresolvedKind};
use crate::eval::Eval;
use crate::eval::command::Place;
use crate::eval::input::Input;
use crate::programs::foreign::mentions;
use crate::programs::operands;
use crate::shape::{is_flag, text_word};
use crate::word::Word;

/// `python -m module arguments…`
pub fn run(eval: &mut Eval<'_>, module: &Word, arguments: &[Word], place: &Place<'_>) {
    let name = module.literal().unwrap_or_default();
    let shell = matches!(
        name.as_str(),
        "pdb" | "code" | "asyncio" | "IPython" | "ptpython" | "bpython" | "sqlite3" | "idlelib"
    );
    if shell {
        let values = arguments.iter().zip(arguments.iter().skip(1));
        let codes = values.filter(|(flag, _)| matches!(flag.literal().as_deref(), Some("-c" | "--command")));
        codes.for_each(|(_, code)| {
            eval.unresolved_with(UnresolvedKind::Code, &format!("-m {name}"), code.span, mentions(code));
        });
        match place.input {
            Input::Text(text) => {
                let mentions = mentions(&text_word(text, place.span));
                eval.unresolved_with(UnresolvedKind::Code, &format!("-m {name} <input"), place.span, mentions);
            }
            Input::Unknown | Input::Partly(_) => {
                eval.unresolved(UnresolvedKind::Code, &format!("| -m {name}"), place.span)
            }
            Input::None => {}
        }
    }
    // A module is mostly a program of the same name.
    let texts: Vec<String> = std::iter::once(module).chain(arguments).filter_map(Word::literal).collect();
    eval.unknown_use(UnknownUseKind::Command, vec![text_word(&texts.join(" "), place.span)], place.span);
    let folder = |word: &Word| eval_folder(arguments, word);
    match name.as_str() {
        "http.server" => {
            let named = arguments.iter().find(|word| folder(word)).cloned();
            named.into_iter().for_each(|named| eval.file(named, Access::Read, true));
        }
        "venv" | "virtualenv" => {
            let folders = arguments.iter().filter(|word| !is_flag(word));
            folders.for_each(|word| operands::unpack(eval, word));
        }
        _ if operands::table::lookup(&name).is_some() => drop(operands::by_entry(eval, &name, arguments, place.span)),
        _ => eval.unknown_use(UnknownUseKind::Arguments, arguments.to_vec(), place.span),
    }
}

/// Whether a word is what `-d` or `--directory` names.
fn eval_folder(arguments: &[Word], word: &Word) -> bool {
    let mut pairs = arguments.iter().zip(arguments.iter().skip(1));
    pairs.any(|(flag, value)| {
        matches!(flag.literal().as_deref(), Some("-d" | "--directory")) && std::ptr::eq(value, word)
    })
}
