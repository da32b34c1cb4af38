//! The syntax tree of a shell line.

use std::rc::Rc;

use writ_core::Span;

/// A command of any kind.
#[derive(Clone, Debug)]
pub enum Node {
    /// Assignments, words and redirections.
    Simple(Simple),
    /// `a | b`; the flag says whether standard error goes along too.
    Pipe(Vec<Node>),
    /// Commands with what stands behind each.
    List(Vec<(Node, Next)>),
    /// `( … )`, or the inside of a substitution: changes inside stay inside.
    Subshell(Box<Node>),
    /// Any branch or body, each of which may run, in order: `if`, `while`, `case` arms.
    Branches(Vec<Node>),
    /// `while`, `until`, `for ((…))`: run any number of times.
    Loop(Vec<Node>),
    /// `for name in words; do body; done`, `select`; without `in`, the words are `"$@"`.
    For {
        /// The variable.
        name: String,
        /// What it runs through.
        words: Option<Vec<RawWord>>,
        /// What is done.
        body: Box<Node>,
    },
    /// A function's definition.
    Function {
        /// Its name.
        name: String,
        /// What it does.
        body: Rc<Node>,
    },
    /// Words that are only expanded: `(( … ))`, `case` subjects and patterns.
    Words(Vec<RawWord>),
    /// `[[ … ]]`: words some of which bash may read as arithmetic.
    Test(Vec<RawWord>),
    /// A compound command with redirections.
    Redirected(Box<Node>, Vec<Redirect>),
}

/// What stands behind a command in a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// `;`, a line break or the end.
    Always,
    /// `&&`
    OnSuccess,
    /// `||`
    OnFailure,
    /// `&`
    Background,
}

/// A simple command.
#[derive(Clone, Debug)]
pub struct Simple {
    /// `NAME=value` in front.
    pub assignments: Vec<Assignment>,
    /// Program and arguments.
    pub words: Vec<RawWord>,
    /// Redirections, wherever they stand.
    pub redirects: Vec<Redirect>,
    /// The whole command.
    pub span: Span,
}

/// `NAME=value`, `NAME+=value`, `NAME[key]=value`, `NAME=(a [k]=b)`.
#[derive(Clone, Debug)]
pub struct Assignment {
    /// The variable.
    pub name: String,
    /// `[key]` behind the name.
    pub key: Option<Vec<RawPart>>,
    /// `+=`
    pub adds: bool,
    /// One word, or an array's, each with the key in front of it.
    pub values: Vec<(Option<Vec<RawPart>>, RawWord)>,
    /// `( … )`.
    pub array: bool,
    /// It is an argument: `export A=b`.
    pub declared: bool,
}

/// `>file`, `<file`, `<<EOF`, `<<<text`.
#[derive(Clone, Debug)]
pub struct Redirect {
    /// What it does.
    pub kind: RedirectKind,
    /// The descriptor it opens; `None` where the shell chooses one (`{name}<file`).
    pub descriptor: Option<u32>,
    /// The file, or the text.
    pub word: RawWord,
    /// It writes behind what the file holds.
    pub appends: bool,
    /// It redirects another descriptor than standard output, or than standard input.
    pub other: bool,
    /// It is for reading: `<` and what begins with it.
    pub input: bool,
}

impl Redirect {
    /// Whether it writes to nowhere.
    pub fn discards(&self) -> bool {
        matches!(self.word.parts.as_slice(), [RawPart::Plain(path)] if path == "/dev/null")
    }
}

/// What a redirection does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RedirectKind {
    /// `<`
    Read,
    /// `>`, `>>`, `>|`, `&>`
    Write,
    /// `<>`
    ReadWrite,
    /// `>&`, `<&`: a file descriptor, or with `>&` a file.
    Duplicate,
    /// `<<`, `<<<`: the word is the text itself.
    Text,
}

/// A word before expansion.
#[derive(Clone, Debug, Default)]
pub struct RawWord {
    /// Its pieces.
    pub parts: Vec<RawPart>,
    /// Where it stands.
    pub span: Option<Span>,
}

/// A piece of a word before expansion.
#[derive(Clone, Debug)]
pub enum RawPart {
    /// Unquoted text: globs, braces and `~` mean something in it.
    Plain(String),
    /// Quoted or escaped text.
    Quoted(String),
    /// `$name`, `${name…}`.
    Param(Param),
    /// `$( … )` or backticks.
    Command(Box<Node>, bool),
    /// `<( … )` or `>( … )`.
    Process(Box<Node>),
    /// `$(( … ))`, `$[ … ]`: a number; what is expanded inside still runs.
    Arithmetic(Vec<RawPart>),
}

/// A parameter's expansion.
#[derive(Clone, Debug)]
pub struct Param {
    /// `HOME`, `1`, `@`; `a[@]` and `a[*]` for all elements.
    pub name: String,
    /// `[key]`
    pub key: Option<Vec<RawPart>>,
    /// `${!name}`
    pub indirect: bool,
    /// What is done with the value.
    pub op: ParamOp,
    /// Inside double quotes: not split.
    pub quoted: bool,
}

/// `${name op word}`.
#[derive(Clone, Debug)]
pub enum ParamOp {
    /// Just the value.
    None,
    /// `:-`, `-`, and with `true` `:=`, `=`: this instead, when there is no value.
    Default(Vec<RawPart>, bool),
    /// `:+`, `+`: this instead, when there is one.
    Alternative(Vec<RawPart>),
    /// `:?`, `?`: the value, or an end.
    Needed(Vec<RawPart>),
    /// `#`, `##`, `%`, `%%`: without what matches at one end.
    Strip {
        /// What goes.
        pattern: Vec<RawPart>,
        /// At the end.
        suffix: bool,
        /// As much as matches.
        longest: bool,
    },
    /// `/`, `//`, `/#`, `/%`
    Replace {
        /// The sign behind the first `/`, or a blank.
        how: char,
        /// What goes.
        pattern: Vec<RawPart>,
        /// What comes.
        with: Vec<RawPart>,
    },
    /// `:offset:length`
    Slice(Vec<RawPart>, Option<Vec<RawPart>>),
    /// `^`, `^^`, `,`, `,,` without a pattern.
    Case {
        /// To upper case.
        upper: bool,
        /// Every letter.
        all: bool,
    },
    /// `@P`: the value is expanded once more.
    Prompt,
    /// Anything else: the value is not known, what is expanded inside still runs.
    Other(Vec<RawPart>),
}

impl ParamOp {
    /// The words inside.
    pub fn words(&self) -> Vec<&[RawPart]> {
        match self {
            Self::None | Self::Case { .. } | Self::Prompt => Vec::new(),
            Self::Default(parts, _) | Self::Alternative(parts) | Self::Needed(parts) | Self::Other(parts) => {
                vec![parts]
            }
            Self::Strip { pattern, .. } => vec![pattern],
            Self::Replace { pattern, with, .. } => vec![pattern, with],
            Self::Slice(offset, length) => {
                [Some(offset), length.as_ref()].into_iter().flatten().map(Vec::as_slice).collect()
            }
        }
    }
}
