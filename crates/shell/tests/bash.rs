//! The real bash as an oracle: it accepts what we accept, and its words are ours.

use std::process::Command;
use std::time::Instant;

use writ_shell::{Env, analyze};

const LINES: &[&str] = &[
    "ls -la",
    "a && b || c; d & e",
    "if a; then b; elif c; then d; else e; fi",
    "while a; do b; done",
    "until a; do b; done < f",
    "for x in a b; do c; done",
    "for ((i=0;i<3;i++)); do c; done",
    "for x; do c; done",
    "case $x in a|b) c;; (d) e;& *) f;; esac",
    "f() { a; }",
    "function f { a; }",
    "f() (a)",
    "[[ $a == b* && -f c ]]",
    "(( a + 1 ))",
    "echo $((1+2))",
    "a | b |& c",
    "! a",
    "time a",
    "a > b 2>&1 >> c < d <> e",
    "a &> b",
    "a <<< 'x'",
    "a <(b) >(c)",
    "x=(a b 'c d')",
    "x+=1",
    "${a:-b} ${a#b} ${#a} ${!a} ${a[@]} ${a/b/c}",
    "{ a; b; }",
    "(a; b)",
    "coproc a",
    "select x in a; do b; done",
    "a \\\n b",
    "a # c",
    "echo \"a $(b \"c\") d\"",
    "echo `a`",
    "a 2>/dev/null",
    "cat <<E\nx\nE\n",
    "cat <<'E'\n$x\nE\nls",
    "cat <<-E\n\tx\n\tE\n",
    "echo {a,b}{1..3}",
    "echo $'a\\n'",
    "exec 3<>f",
    "{fd}>f a",
    "a;\nb\n",
    "echo $[1+2] $[ a[0] ]",
    "a[1 + 2]=x",
    "a[$(b)]=x c",
    "a=([k]=v [x y]=z w)",
    "echo ${a[$(b)]} ${a[-1]} ${#a[@]} ${!a[@]} ${!#} ${!}",
    "echo ${a:1:2} ${a: -1} ${a//b/c} ${a/#b} ${a^^} ${a,} ${a@P} ${a@Q} ${a:?b} ${a:=c}",
    "echo ${a%%*b} ${a##*/} ${@:2}",
    "time -p -- a",
    // refused
    "if a; then b",
    "a |",
    "a &&",
    "(a",
    "a)",
    "{ a;",
    "'a",
    "\"a",
    "`a",
    "$(a",
    "for; do a; done",
    "case x in",
    ";;",
    "a ;; b",
    "| a",
    "&& a",
    "done",
    "fi",
    "a > ",
    "while a; b; done",
    "${a",
    "f() {",
    "((1+2)",
    "a <<<",
];

fn env() -> Env {
    Env { home: Some("/home/user".to_owned()), cwd: Some("/work".to_owned()), ..Env::default() }
}

#[test]
fn accepts_and_refuses_with_bash() {
    for line in LINES {
        let bash = Command::new("bash").args(["-n", "-c", line]).output().expect("bash is there").status.success();
        let ours = analyze(line, &env()).syntax_error;
        assert_eq!(ours.is_none(), bash, "{line:?}: bash {bash}, ours {ours:?}");
    }
}

/// Each line prints its words; ours must be the same.
#[test]
fn words_are_bashs_words() {
    for line in [
        r#"p a 'b c' "d e" f\ g"#,
        r#"p $'x\ty' $'\x41\102'"#,
        r#"p a"b"'c'd"#,
        r#"p {a,b}c{1..3}"#,
        r#"x='a b'; p $x "$x""#,
        r#"x=1; y=2; p $x$y ${x}z"#,
        r#"p ${nope:-d} "${nope:-e f}""#,
        r#"p $(echo hi there) "$(printf 'a %s' b)""#,
        "p `echo x`",
        r#"a=(x 'y z'); p "${a[@]}""#,
        r#"p "" x"#,
        r#"set -- q r; p "$@" $1"#,
        "p ~ ~/x '~'",
        r#"p "a\"b\$c\\d""#,
        "for i in 1 2; do p $i; done",
        "f() { p \"$1\"; }; f z",
        "p \"$(cat <<'E'\nl1\nE\n)\"",
        "x=a; x+=b; p $x",
        "p pre{x,y}post",
        "p {01..03} {9..1..4} {a..e..2} x{1..2}{a,b}",
        "a=(x 'y z'); p $a ${a[1]} \"${a[1]}\" ${a[-1]} \"${a[*]}\"",
        "a[3]=x; p ${a[3]}",
        "declare -A m=([k]='v w'); p \"${m[k]}\" ${m[k]}",
        "x=/a/b.tar.gz; p ${x##*/} ${x%.gz} ${x%%.*} ${x#/} ${x%/*}",
        "x=abcabc; p ${x/b/X} ${x//b/X} ${x/#a/X} ${x/%c/X} ${x//b} ${x:2} ${x:1:2} ${x: -2} ${x^} ${x^^}",
        "x=ABC; p ${x,,} ${x,}",
        "y=x; x=z; p ${!y}",
        "set -- a b c; p ${@:2} \"${@:2:1}\" ${!#}",
        "set a b; shift; p $1 $@",
        "f() { shift; p \"$@\"; }; f a b c",
        "IFS=,; x=a,b,,c; p $x",
        "IFS=:; set -- a b; p \"$*\" $*",
        "read x y <<< 'a b c'; p $x \"$y\"",
        "x=' a '; p $x; p x$x''",
        "read -ra l <<< 'a b'; p ${l[1]}",
        "mapfile -t l <<< $'a\\nb'; p ${l[1]}",
        "for x in a b; do y+=$x; done; p $y",
        "p $(dirname a/b) $(basename a/b/) $(dirname b)",
        "printf -v x -- -%s a; p \"$x\"",
        "x=1; x=2 p $x",
        "a=(x); a+=(y z); p \"${a[@]}\"",
        "declare -n r=x; x=y; p $r",
    ] {
        let script = format!("p() {{ printf '<%s>' \"$@\"; echo; }}\n{line}");
        let bash =
            Command::new("bash").args(["-c", &script]).env("HOME", "/home/user").output().expect("bash is there");
        let bash = String::from_utf8(bash.stdout).expect("text");
        let analysis = analyze(line, &env());
        let shown = |command: &writ_shell::Command| {
            let words = command
                .words
                .iter()
                .skip(1)
                .map(|word| format!("<{}>", word.literal().unwrap_or_else(|| "?".to_owned())));
            words.collect::<String>()
        };
        let own = |command: &&writ_shell::Command| command.words[0].literal().as_deref() == Some("p");
        let ours: Vec<String> = analysis.commands.iter().filter(own).map(shown).collect();
        assert!(!bash.is_empty(), "{line} prints nothing");
        for printed in bash.lines() {
            assert!(ours.iter().any(|own| own == printed), "{line}: bash prints {printed}, ours are {ours:?}");
        }
    }
}

#[test]
fn hostile_lines_end_cleanly() {
    let bomb = |piece: &str, count: usize| piece.repeat(count);
    for line in [
        format!("a=xx;{}$a", bomb("a=$a$a;", 26)),
        format!("a=xx;{}", bomb("printf -v a %s%s $a $a;", 24)),
        format!("set -- a b;{}", bomb("set -- \"$@\" \"$@\";", 24)),
        format!("a=(x y);{}", bomb("a=(\"${a[@]}\" \"${a[@]}\");", 24)),
        format!("set -- {};{}", bomb("a ", 50_000), bomb("cat $@;", 100)),
        bomb("\\", 250_000),
        bomb("'", 250_000),
        format!("cat {}", bomb("a ", 120_000)),
        format!("a {}", bomb(">b ", 80_000)),
        format!("curl {}", bomb("http://x.example/ ", 14_000)),
        bomb("a[;", 80_000),
        bomb("{,", 100_000),
        bomb("{a,b}{a,b} ", 20_000),
        format!("{}x+=$a;{}", bomb("for a in 1 2 3;do ", 20), bomb("done;", 20)),
        format!("{}x=$x$y;cd $x;{}", bomb("while a;do ", 40), bomb("done;", 40)),
        format!("echo {}x{}", bomb("$(echo ", 40), bomb(")", 40)),
        format!("echo {}x{}", bomb("${a[", 40), bomb("]}", 40)),
        "f(){ f \"$@\" a; f \"$@\" b; }; f".to_owned(),
        bomb("cd a; cat b c d;", 16_000),
        bomb("$a$b$c$d$e$f$g$h ", 15_000),
        bomb("$(", 500_000),
        bomb("$(", 20_000),
        bomb("(", 20_000),
        bomb("((", 5_000),
        bomb("$((", 20_000),
        bomb("{", 20_000),
        bomb("\"$(", 10_000),
        bomb("`", 9_999),
        bomb("${a:-", 20_000),
        bomb("{a,b}", 2_000),
        bomb("if ", 20_000),
        bomb("f(){ ", 10_000),
        bomb("a|", 60_000),
        bomb("<<E ", 10_000),
        bomb("a;", 100_000),
        bomb("x=$x$x;", 2_000),
        format!("{} p {}", bomb("x=a;x=b;", 50), bomb("$x", 200)),
        bomb("eval ", 20_000),
        format!("f(){{ f; f; }}; {}", bomb("f;", 1000)),
        "a\0b".to_owned(),
        bomb("sh -c 'sh -c ", 5_000),
        bomb("[[ ", 10_000),
        bomb("case x in ", 10_000),
        bomb("*", 100_000),
        bomb("$'\\x", 10_000),
        bomb("<(", 10_000),
        bomb("xargs ", 30_000),
        bomb("{1..9999999}", 50),
    ] {
        let start = Instant::now();
        let analysis = analyze(&line, &env());
        let head: String = line.chars().take(20).collect();
        assert!(analysis.commands.len() <= 2_000, "{head}");
        // Far above what is needed; catches the quadratic, not a slow machine.
        assert!(start.elapsed().as_secs() < 3, "{head} took {:?}", start.elapsed());
    }
}

const PIECES: &[&str] = &[
    "$(",
    ")",
    "(",
    "{",
    "}",
    "'",
    "\"",
    "`",
    "$",
    "${",
    "a",
    " ",
    "=",
    ";",
    "&&",
    "|",
    "<<E\n",
    "E\n",
    "\n",
    "if ",
    "then ",
    "fi",
    "for x in ",
    "do ",
    "done",
    "[[",
    "]]",
    "\\",
    "<(",
    ">",
    "#",
    "é",
    "*",
    "~",
    "x=",
    "eval ",
    "sh -c ",
    "xargs ",
    "find . -exec ",
    "\\;",
    "{a,b}",
    "$'",
];

proptest::proptest! {
    #[test]
    fn never_panics(line in "[ -~\\n]{0,60}") {
        analyze(&line, &env());
    }

    #[test]
    fn never_panics_on_shell_like_text(pieces in proptest::collection::vec(proptest::sample::select(PIECES), 0..40)) {
        analyze(&pieces.concat(), &env());
    }
}
