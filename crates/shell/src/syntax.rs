//! The syntax tree of a shell line.

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
    /// `for name in words; do body; done`, `select`; without `in`, the words are not known.
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
        body: Box<Node>,
    },
    /// Words that are only expanded: `[[ … ]]`, `(( … ))`, `case` subjects and patterns.
    Words(Vec<RawWord>),
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

/// `NAME=value`, `NAME+=value`, `NAME=(a b)`.
#[derive(Clone, Debug)]
pub struct Assignment {
    /// The variable.
    pub name: String,
    /// `+=`, or an element: the old value stays possible.
    pub adds: bool,
    /// One word, or an array's.
    pub values: Vec<RawWord>,
    /// `( … )`.
    pub array: bool,
}

/// `>file`, `<file`, `<<EOF`, `<<<text`.
#[derive(Clone, Debug)]
pub struct Redirect {
    /// What it does.
    pub kind: RedirectKind,
    /// The file, or the text.
    pub word: RawWord,
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
    Param {
        /// `HOME`, `1`, `@`.
        name: String,
        /// What is done with the value.
        op: ParamOp,
        /// Inside double quotes: not split.
        quoted: bool,
    },
    /// `$( … )` or backticks.
    Command(Box<Node>, bool),
    /// `<( … )` or `>( … )`.
    Process(Box<Node>),
    /// `$(( … ))`: a number; what is expanded inside still runs.
    Arithmetic(Vec<RawPart>),
}

/// `${name op word}`.
#[derive(Clone, Debug)]
pub enum ParamOp {
    /// Just the value.
    None,
    /// `:-`, `-`, `:=`, `=`: this instead, when there is no value.
    Default(Vec<RawPart>),
    /// `:+`, `+`: this instead, when there is one.
    Alternative(Vec<RawPart>),
    /// Anything else: the value is not known, what is expanded inside still runs.
    Other(Vec<RawPart>),
}
