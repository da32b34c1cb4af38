//! The words of `data/programs/*.toml` and `data/languages/*.toml`, each with what it means.
//!
//! Owns the vocabulary and nothing else: the build script reads the entries by it, the analysis matches on it, and
//! `spec/programs.md` is made from it. Invariant: what the analysis can meet is a word here, so that a typing error in an entry
//! fails the build.

/// A word of one kind.
pub trait Word: Copy + 'static {
    /// Each word with its meaning, in the order of the page.
    const WORDS: &'static [(&'static str, Self, &'static str)];

    /// As an entry spells it.
    fn word(self) -> &'static str;

    /// What it says.
    fn meaning(self) -> &'static str;
}

/// An enum whose variants are words of the entries.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($word:literal $variant:ident $meaning:literal,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $(#[doc = $meaning] $variant,)+
        }

        impl Word for $name {
            const WORDS: &'static [(&'static str, Self, &'static str)] = &[$(($word, Self::$variant, $meaning),)+];

            fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            fn meaning(self) -> &'static str {
                match self {
                    $(Self::$variant => $meaning,)+
                }
            }
        }
    };
}

words! {
    /// What the value of an option is.
    Role {
        "unknown" Unknown "not known: it may be a command, code or a file, and is held against the rules for each",
        "reads" Reads "a file that is read",
        "lists" Lists "a file or folder of which only the name, the size or the date is looked at",
        "writes" Writes "a file that is written",
        "reads-tree" ReadsTree "a folder that is read whole",
        "writes-tree" WritesTree "a folder that is written whole",
        "target-folder" TargetFolder "the folder that what is copied, unpacked or downloaded lands in",
        "output-folder" OutputFolder "a folder that files are written to",
        "runs-in" RunsIn "the folder the program runs in",
        "reads-hosts" ReadsHosts "a file that is read, and whose text names hosts",
        "command" Command "a command that runs",
        "remote-command" RemoteCommand "a command that runs on another machine",
        "code" Code "code in the program's own language",
        "script" Script "a file of code that runs; `-` is standard input",
        "module" Module "a module, or its text as a URL",
        "library" Library "a library that is loaded",
        "include" Include "an extension that changes what happens to the operands (awk's `inplace`)",
        "editor-command" EditorCommand "an editor's command: `w file`, `!command`",
        "client-command" ClientCommand "a client's command: `.read file`, `\\! command`",
        "commands" Commands "a file of an editor's, a client's or a debugger's commands",
        "debugger-command" DebuggerCommand "a debugger's command: `shell command`",
        "key-binding" KeyBinding "fzf's `key:execute(command)`",
        "checkpoint-action" CheckpointAction "tar's `exec=command`",
        "makefile" Makefile "a makefile",
        "makefile-text" MakefileText "the text of a makefile",
        "assignment" Assignment "`NAME=value` for the environment",
        "entrypoint" Entrypoint "the program that runs with the operands behind the image",
        "split-string" SplitString "a command line that `env` splits itself",
        "placeholder" Placeholder "the mark that an item takes the place of",
        "delimiter" Delimiter "what stands between items",
        "user" User "a user, whose presence makes the operands a command",
        "writes-or-pipes" WritesOrPipes "a file that is written, or a command behind `|` or `!`",
        "cargo-setting" CargoSetting "cargo's `name=value`, where the value may be a command",
        "cargo-subcommand" CargoSubcommand "a subcommand of cargo, with its arguments",
        "cmake-mode" CmakeMode "what `cmake -E` is to do",
        "apt-setting" AptSetting "apt's `Name::Of::Setting=value`: a URL, or a command",
        "ssh-option" SshOption "ssh's `Name=value`: a host, or a command",
        "setting" Setting "`name=value`, where the value may be a URL or a proxy's host",
        "url" Url "a URL",
        "host" Host "`host[:port]`",
        "hosts" Hosts "hosts, with commas between them",
        "url-or-host" UrlOrHost "a URL or a host; else a file or a name",
        "has-urls" HasUrls "text with URLs anywhere in it",
        "inventory" Inventory "hosts, with commas between them; without a comma a file",
        "forward" Forward "`[bind:]port:host:port`",
        "connect-to" ConnectTo "curl's `name:port:host:port`",
        "share" Share "`host:path` or `//host/path`",
        "editor-remote" EditorRemote "where an editor's window is: `ssh-remote+host`, or a URL",
        "image" Image "an image, whose reference may name a registry that it is pushed to",
        "volume" Volume "`from:to[:ro]`: a folder that a container sees",
        "mount" Mount "`type=bind,src=from,…`: a folder that a container sees",
        "at-file" AtFile "text, or a file that is read behind `@`",
        "name-at-file" NameAtFile "text, or a file that is read behind `@` or `name@`",
        "form-field" FormField "`name=@file`, `name=<file`, `name@file`",
        "named-file" NamedFile "`[name=]file`, which is read",
        "write-out" WriteOut "curl's format: `@file` is read, `%output{file}` is written",
        "cookie" Cookie "`name=value`, or a file that is read",
        "name-then-file" NameThenFile "two words: a name, and a file that is read",
        "text" Text "neither a file nor a host",
        "two-words" TwoWords "two words, neither a file nor a host",
        "three-words" ThreeWords "three words, neither a file nor a host",
    }
}

impl Role {
    /// How many words stand in front of the last that an option takes, and what that last one is.
    pub fn words(self) -> (usize, Self) {
        if self == Self::TwoWords {
            (1, Self::Text)
        } else if self == Self::ThreeWords {
            (2, Self::Text)
        } else if self == Self::NameThenFile {
            (1, Self::Reads)
        } else {
            (0, self)
        }
    }
}

words! {
    /// What the operands are.
    Operands {
        "none" None "nothing that is a file or a host",
        "read" Read "files that are read",
        "listed" Listed "files of which only the name, the size or the date is looked at",
        "written" Written "files that are written; `+x` is an editor's command",
        "edited" Edited "files that are read and written; `+x` is an editor's command",
        "written-trees" WrittenTrees "folders that are written whole",
        "first-read" FirstRead "the first is a file that is read",
        "first-written" FirstWritten "the first is a file that is written",
        "read-then-written" ReadThenWritten "the first is read, the second written",
        "mode-then-written" ModeThenWritten "a mode or an owner, then files that are written",
        "pattern-then-read" PatternThenRead "a pattern or a script unless an option gives it, then files that are read",
        "pattern-then-trees" PatternThenTrees "a pattern unless an option gives it, then what is read with everything below; else the folder it runs in",
        "written-if-fixed" WrittenIfFixed "files that are read, and written where an option says so",
        "mostly-not-files" MostlyNotFiles "words, of which those that clearly look like a path are read; URLs are contacted",
        "has-urls" HasUrls "text with URLs anywhere in it",
        "urls" Urls "URLs",
        "hosts" Hosts "a host, and more where they look like one",
        "first-host" FirstHost "the first is a host",
        "dns-names" DnsNames "names to look up, and `@server`",
        "addresses" Addresses "`user@host`",
        "shares" Shares "`host:path` or `//host/path`",
        "database" Database "a database: a URL, `host=…` or `host/name`",
        "image-references" ImageReferences "images, whose reference may name a registry",
        "go-packages" GoPackages "import paths, which `go get` fetches",
        "copy" Copy "sources, then a target that may be a folder",
        "move" Move "sources that are gone afterwards, then a target that may be a folder",
        "link" Link "what links lead to, then the links or their folder; else the folder it runs in",
        "sync" Sync "sources with everything below, then a target; either may be `machine:path`",
        "remote-copy" RemoteCopy "sources, then a target; either may be `machine:path`",
        "cloud-store" CloudStore "behind `cp`, `mv`, `sync`: a store's URLs and paths",
        "git-paths-read" GitPathsRead "revisions or paths, which are read",
        "git-paths-written" GitPathsWritten "revisions or paths, which are written",
        "git-remotes" GitRemotes "remotes, or other words",
        "git-remote-first" GitRemoteFirst "the first is a remote",
        "compress" Compress "files that are replaced; with `-c`, `-t` or `-l` only read",
        "zip" Zip "an archive that is written, then what goes in",
        "unzip" Unzip "an archive, then members",
        "seven-zip" SevenZip "what to do, an archive, then members",
        "cpio" Cpio "as `cpio` has it",
        "tar" Tar "as `tar` has it",
        "dd" Dd "`if=file`, `of=file`",
        "docker" Docker "as `docker` has it: images, and what becomes of them",
        "httpie" Httpie "a method, a URL, then fields",
        "openssl" Openssl "a subcommand, then files or a host",
        "socat" Socat "`OPEN:file`, `TCP:host:port`, `EXEC:command`",
        "sqlite" Sqlite "a database that is written, then its commands",
        "yq" Yq "an expression, then files",
    }
}

words! {
    /// Where among the operands the code or the command stands that a program runs.
    Run {
        "none" None "nowhere: only options and standard input are looked at",
        "subcommand" Subcommand "the entry of the subcommand says",
        "command" Command "the operands are a command and its arguments",
        "second-command" SecondCommand "a command and its arguments, which begins at the first operand or at the second",
        "command-behind-dashes" CommandBehindDashes "a command behind `--`",
        "command-behind-option" CommandBehindOption "a command behind `-c` or `--command`",
        "command-or-code" CommandOrCode "one word of shell code, or a command and its arguments",
        "shell-code" ShellCode "the operands together are shell code",
        "shell-code-each" ShellCodeEach "each operand is shell code",
        "code-each" CodeEach "each operand is code in the program's own language",
        "client-commands" ClientCommands "each operand is a client's command",
        "script" Script "a script and its arguments, unless an option has code",
        "script-by-suffix" ScriptBySuffix "a script and its arguments, where its name has a dot",
        "keys" Keys "keys that are typed into a shell",
        "package" Package "a package whose program runs",
        "variables" Variables "`NAME=value`, as `make` takes it",
        "written" Written "nowhere: operands are files that are written",
        "tmux" Tmux "tmux's commands, with `;` between them",
        "screen" Screen "as `screen` has it",
        "debugger" Debugger "a command behind `--args`",
        "cmake" Cmake "a command behind `cmake -E env` and its like",
    }
}

words! {
    /// What is on standard input, where it is read.
    Stdin {
        "shell-code" ShellCode "shell code",
        "code" Code "code in the program's own language",
        "client-commands" ClientCommands "a client's commands",
    }
}

words! {
    /// What a program prints where its text is not known.
    Prints {
        "number" Number "letters, digits, `-`, `_` and `:`",
        "name" Name "the name of a file, without a slash",
        "outside" Outside "a value that the line did not make, without `..`",
        "any" Any "any text, where a shorter pattern says otherwise",
        "setup" Setup "shell code that only sets up the shell for the program: `eval` of it does nothing else",
        "sum-and-name" SumAndName "a number, then the name it is of",
    }
}

words! {
    /// What a variable that steers a program holds.
    Variable {
        "command" Command "a command that runs",
        "program" Program "a command that runs; not known where it is no program of the system's",
        "filter" Filter "a command behind `|`",
        "steers" Steers "something that changes what runs in a way that is not known",
        "options" Options "options of the program",
        "writes" Writes "a file that is written, where it is a path",
        "writes-tree" WritesTree "a folder that is written whole",
        "reads" Reads "a file that is read",
        "settings" Settings "a file or folder of settings: it may name commands and hosts, unless it is the system's or behind a dot at home",
        "libraries" Libraries "folders of libraries, which are looked at",
        "host" Host "a host or a URL",
        "share" Share "`host:path`; without a host something on this machine",
        "steers-where" SteersWhere "text that changes what runs where it has one of the `texts`",
    }
}

words! {
    /// What a word of a language does where it is called or, for an option of the interpreter, what its value is.
    Effect {
        "harmless" Harmless "nothing beyond values",
        "reads" Reads "the first argument is a file that is read",
        "lists" Lists "the first argument is a path that is looked at",
        "writes" Writes "the first argument is a file that is written",
        "writes-tree" WritesTree "the first argument is a folder that is written whole",
        "copies" Copies "the first argument is read, the second written",
        "copies-tree" CopiesTree "the first argument is read, the second written, with everything below",
        "moves" Moves "the first argument and the second are written",
        "opens" Opens "the first argument is a file, which a mode says more of",
        "makes-path" MakesPath "a path is made of the arguments",
        "own-reads" OwnReads "the value itself is a path that is read",
        "own-lists" OwnLists "the value itself is a path that is looked at",
        "own-writes" OwnWrites "the value itself is a path that is written",
        "own-moves" OwnMoves "the value itself and the first argument are paths that are written",
        "own-opens" OwnOpens "the value itself is a file, which a mode says more of",
        "url" Url "the first argument is a URL",
        "shell-code" ShellCode "the first argument is shell code",
        "command" Command "the first argument is a command",
        "sql" Sql "the first argument is SQL that touches nothing but its database",
        "callback" Callback "the first argument is a function",
        "second-callback" SecondCallback "the second argument is a function",
        "input" Input "what is read are the files that the arguments name",
        "module" Module "a module, which is listed",
        "code" Code "an option whose value is code",
        "word" Word "an option whose value is a word",
        "digits" Digits "an option that digits may be glued to",
        "separator" Separator "an option whose value parts fields",
        "setting" Setting "an option whose value is a setting, which is listed",
    }
}

words! {
    /// A list of words of a language.
    List {
        "names" Names "what a program may use without having made it",
        "keywords" Keywords "words of the grammar",
        "reserved" Reserved "names that a program may not make its own, because their first meaning is not harmless",
        "attributes" Attributes "members of values",
        "methods" Methods "members of values that are called",
        "classes" Classes "classes of which values are made",
        "callable" Callable "objects that are called like functions",
        "constants" Constants "names of values",
        "escapes" Escapes "members that lead out of a value",
        "opaque" Opaque "members of modules that nothing is known of",
        "arguments" Arguments "names of arguments",
        "options" Options "options of the interpreter",
        "requires" Requires "modules that may be loaded",
        "settings" Settings "settings that may be set",
    }
}
