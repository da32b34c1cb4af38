use super::*;

fn differs(line: &str) -> Option<&'static str> {
    let env = Env { home: Some("/home/user".to_owned()), cwd: Some("/work".to_owned()), ..Env::default() };
    differs_in_zsh(line, &env).map(|(what, _)| what)
}

/// Each does something else in zsh than in bash, by itself or under `extendedglob`.
#[test]
fn tells_what_zsh_reads_in_its_own_way() {
    for line in [
        "x=(.env b); cat ${x[1]}",
        "x=$PWD/secrets; cat ~x/prod.txt",
        "cat $(echo '\\x2eenv')",
        "repeat 1 forbid",
        "- forbid",
        "noglob forbid",
        "emulate zsh -c forbid",
        "setopt nocaseglob; cat .EN*",
        "zmodload zsh/mapfile; echo $mapfile[.env]",
        "functions[f]=forbid; f",
        "f=.env; cat $~f",
        "=forbid now",
        "cat =(echo x)",
        "x==forbid; $x",
        "cat *(e:forbid:)",
        "cat .e(n)v",
        "cat <1-9>",
        "cat .en#v",
        "cat ^README",
        "cat .en^x",
        "cat *~README.md",
        "cat **/prod.txt",
        "echo x >! .env",
        "echo x >>| .env",
        "echo ${(e)x}",
        "echo \"${(P)x}\"",
        "echo ${=x} ${~x}",
        "echo ${x:h}",
        "cat $x:h/y",
        "echo $#x",
        "x=aenv; x[1]=.; cat $x",
        "x='a b'; cat $x",
        "x=(a b); cat $x",
        "path=(/tmp $path); ls",
        "NULLCMD=forbid; < x",
        "echo .env | read f; cat $f",
        "true | cd secrets; cat prod.txt",
        "chpwd() { forbid; }; cd src",
        "TRAPEXIT() { forbid; }",
        "alias ls=forbid\nls",
        "alias -s md=forbid; README.md",
        "hash ls=/tmp/x; ls",
        "cd src secrets; cat prod.txt",
        "set -o extendedglob; ls",
        "set -f; cat *",
        "eval 'cat *(e:forbid:)'",
        "{ cd src }; cat x",
        "foreach f (.env); cat $f; end",
    ] {
        assert!(differs(line).is_some(), "{line}");
    }
}

/// Lines that both shells read alike.
#[test]
fn is_silent_on_plain_lines() {
    for line in [
        "ls -la src",
        "cd src && git status --short | head -20",
        "git log --oneline HEAD~3..HEAD",
        "git diff HEAD^ -- src/main.rs",
        "git show HEAD~1:src/lib.rs | sed -n '1,20p'",
        "grep -rn 'fn main(' --include=*.rs . | wc -l",
        "find . -name '*.py' -exec grep -l x {} \\;",
        "for f in *.txt; do echo \"$f\"; done",
        "if [ -f Cargo.toml ]; then cargo test; fi",
        "[[ \"$x\" =~ ^(a|b)$ ]] && echo yes",
        "echo $((2**3 + (1*2)))",
        "export PATH=\"$HOME/bin:$PATH\"",
        "python3 - <<'EOF'\nx = [1, 2]\nprint(x[1], len(x))\nEOF",
        "cat <<EOF > out.txt\nhello $USER (you)\nEOF",
        "curl -s https://example.com/a#b | jq '.[0].name'",
        "docker run --rm -v \"$PWD\":/w -w /w node:20 npm test",
        "awk '{print $1}' file | sort | uniq -c",
        "x=1; y=$(date +%s); echo \"$x $y\"",
        "f() { echo hi; }; f",
        "a=\"one two\"; echo \"$a\"",
        "files=(a b); for f in \"${files[@]}\"; do cat \"$f\"; done",
        "echo \"a\\nb\"",
        "cmd 2>&1 | tee out.log",
        "cat a | while read -r l; do echo \"$l\"; done",
        "cp ~/.bashrc ./x~",
        "test a == b || true",
        "set -euo pipefail; make",
        "echo 'it'\"'\"'s'",
        "sed -i 's/a(b)/c/' f # a (comment)",
        "git commit -m \"fix(core): x [y] $(date) (z)\"",
        "npm run build && (cd dist && ls)",
        "case $1 in a|b) echo x ;; *) echo y ;; esac",
        "echo ${x:-default} ${x%.txt} ${#x} ${x:0:3} ${x//a/b}",
        "diff <(sort a) <(sort b)",
        "printf '%s\\n' a b | sort",
    ] {
        assert_eq!(differs(line), None, "{line}");
    }
}

/// Any text is looked at without a panic, in time.
#[test]
fn takes_any_text() {
    for line in ["", "'", "\"$(", "<<", "<<E\n", "$", "${", "\\", "((", "[[", "#", "| ", "a=", "é(ü", "\u{1}"] {
        let _found = differs(line);
    }
    let long = "a (b ".repeat(30_000);
    assert!(differs(&long).is_some());
}
