//! The eight repositories.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Place, Sample, servers};

/// What a repository has that policies deny: git ignores it.
fn secrets(place: &Place) {
    place.write(".env", "KEY=secret\n");
    place.write("secrets/key", "secret\n");
}

/// `file:` dependencies, one from a registry, scripts.
pub const NPM: Sample = Sample {
    name: "npm",
    make: |place| {
        secrets(place);
        let port = servers::registry(&place.home);
        place.write(".gitignore", ".env\nsecrets/\nnode_modules/\ndist/\n");
        place.write(
            ".npmrc",
            &format!("registry=http://127.0.0.1:{port}/\nfund=false\naudit=false\nupdate-notifier=false\n"),
        );
        place.write(
            "package.json",
            r#"{"name": "app", "version": "1.0.0", "private": true,
               "scripts": {"test": "node --test --test-reporter=dot test/", "build": "mkdir -p dist && cp index.js dist/", "postinstall": "node build.js"},
               "dependencies": {"near": "file:packages/near", "greeting": "^1.0.0"}}"#,
        );
        place.write("build.js", "require('fs').writeFileSync('built', 'built\\n');\n");
        place.write("index.js", "console.log(require('greeting')(require('near')));\n");
        place.write("test/app.test.js", "const test = require('node:test');\ntest('near', () => require('node:assert').equal(require('near'), 'near'));\n");
        place.write(
            "packages/near/package.json",
            r#"{"name": "near", "version": "1.0.0", "bin": {"near": "index.js"}}"#,
        );
        place.write("packages/near/index.js", "#!/usr/bin/env node\nmodule.exports = 'near';\n");
        vec![port]
    },
    lines: &[
        "npm install",
        "node index.js",
        "npm test",
        "npm run build --silent && cat dist/index.js",
        "npm ls",
        "npx near; npm pack --dry-run --json 2>/dev/null | grep path",
        "rm -r node_modules && npm ci",
        "git add -A && git commit -qm first && git status --short && git log --format=%s --name-only",
    ],
};

/// A workspace with a path dependency.
pub const CARGO: Sample = Sample {
    name: "cargo",
    make: |place| {
        secrets(place);
        place.write(".gitignore", ".env\nsecrets/\ntarget/\n");
        place.write("Cargo.toml", "[workspace]\nmembers = [\"app\", \"lib\"]\nresolver = \"2\"\n");
        place.write("app/Cargo.toml", "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2021\"\nlicense = \"MIT\"\ndescription = \"x\"\nrepository = \"https://a.example\"\n[dependencies]\nlib = { path = \"../lib\", version = \"0.1\" }\n");
        place.write("app/src/main.rs", "fn main() { println!(\"{}\", lib::two()); }\n");
        place.write("app/build.rs", "fn main() { println!(\"cargo:rerun-if-changed=build.rs\"); }\n");
        place.write("lib/Cargo.toml", "[package]\nname = \"lib\"\nversion = \"0.1.0\"\nedition = \"2021\"\nlicense = \"MIT\"\ndescription = \"x\"\nrepository = \"https://a.example\"\n");
        place.write("lib/src/lib.rs", "pub fn two() -> u32 { 2 }\n#[test]\nfn is_two() { assert_eq!(two(), 2); }\n");
        Vec::new()
    },
    lines: &[
        "cargo build --offline 2>&1 | sort",
        "cargo run -q --offline -p app",
        "cd lib && cargo test -q --offline --lib",
        "cd ..; git add -A && git commit -qm first && git status --short",
        "cargo package --offline --no-verify -p lib && cargo package --offline --list -p app",
        "ls -A; git status --short",
    ],
};

/// A virtual environment with pytest in it.
pub const PYTHON: Sample = Sample {
    name: "python",
    make: |place| {
        secrets(place);
        let wheels = place.repository().join("vendor");
        fs::create_dir_all(&wheels).unwrap();
        let copied = Command::new("cp").arg("-r").arg(wheels_of_pytest().join(".")).arg(&wheels).status();
        assert!(copied.unwrap().success());
        place.write(".gitignore", ".env\nsecrets/\n.venv/\n__pycache__/\n.pytest_cache/\nvendor/\n");
        place.write("app/__init__.py", "def two():\n    return 2\n");
        place.write("tests/test_app.py", "from app import two\n\ndef test_two(tmp_path):\n    (tmp_path / 'x').write_text('x')\n    assert two() == 2\n");
        place.write(
            "tests/test_plain.py",
            "import unittest\n\nclass T(unittest.TestCase):\n    def test(self):\n        self.assertTrue(True)\n",
        );
        Vec::new()
    },
    lines: &[
        "/usr/bin/python3 -m venv .venv",
        ".venv/bin/python -m pip install -q --disable-pip-version-check --no-index --find-links vendor pytest; ls .venv/bin | sort",
        ". .venv/bin/activate && python -m pytest -q tests",
        ".venv/bin/python -m unittest tests.test_plain",
        "python3 -c 'import multiprocessing as m; p = m.Pool(2); print(p.map(abs, [-1, -2])); p.close(); p.join()'",
        "git add -A && git commit -qm first && git status --short",
    ],
};

/// Pytest and what it needs, as archives; fetched once.
fn wheels_of_pytest() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pytest-wheels");
    let there = |folder: &Path| fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
    if !there(&folder) {
        let part = folder.with_extension(std::process::id().to_string());
        let pip = Command::new("/usr/bin/python3")
            .args(["-m", "pip", "download", "-q", "--disable-pip-version-check", "pytest==8.3.5", "-d"])
            .arg(&part)
            .status();
        assert!(pip.is_ok_and(|status| status.success()), "pip does not fetch pytest");
        // Another test may have been quicker.
        if fs::rename(&part, &folder).is_err() {
            fs::remove_dir_all(&part).unwrap();
        }
    }
    folder
}

/// A build that needs no container.
pub const MAKE: Sample = Sample {
    name: "make",
    make: |place| {
        secrets(place);
        place.write(".gitignore", ".env\nsecrets/\n*.o\nhello\n");
        place.write("Makefile", "CFLAGS = -O1 -Isrc\nhello: src/main.o src/part.o\n\t$(CC) -o $@ $^\ntest: hello\n\t./hello | grep -q 'hello 2'\nclean:\n\trm -f hello src/*.o\n.PHONY: test clean\n");
        place.write("src/part.h", "int part(void);\n");
        place.write("src/part.c", "#include \"part.h\"\nint part(void) { return 2; }\n");
        place.write(
            "src/main.c",
            "#include <stdio.h>\n#include \"part.h\"\nint main(void) { printf(\"hello %d\\n\", part()); return 0; }\n",
        );
        Vec::new()
    },
    lines: &[
        "make",
        "./hello && make test && echo tested",
        "make clean && make -j2 2>&1 | sort",
        "gcc -o both src/*.c 2>&1; ./both; rm both",
        "export LATER=1; exit 3",
        "kill -TERM $$",
        "git add -A && git commit -qm first && git status --short && git show --stat --format=%s",
    ],
};

/// Commits, and pushes to a host and by path.
pub const GIT: Sample = Sample {
    name: "git",
    make: |place| {
        secrets(place);
        place.write(".gitignore", ".env\nsecrets/\n");
        place.write("README.md", "# A\n");
        place.write("src/a.txt", "a\n");
        let host = place.home.join("host");
        for name in [host.join("remote.git"), place.repository().join("near.git")] {
            let made = Command::new("git").args(["init", "--quiet", "--bare", "-b", "main"]).arg(name).status();
            assert!(made.unwrap().success());
        }
        let ignored = place.repository().join(".git/info/exclude");
        fs::write(ignored, ".aflock\nnear.git\n").unwrap();
        let port = servers::git_host(host);
        let config = place.repository().join(".git/config");
        let remote = format!(
            "[remote \"origin\"]\n\turl = http://127.0.0.1:{port}/remote.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n"
        );
        fs::write(&config, fs::read_to_string(&config).unwrap() + &remote).unwrap();
        vec![port]
    },
    lines: &[
        "git status --short",
        "git add -A && git commit -m first",
        "git push origin main",
        "git switch -q -c feature && echo b > src/b.txt && git add src && git commit -qm second && git log --oneline",
        "git push origin feature && git fetch && git branch -a",
        "git switch -q main && git merge --no-ff -m merged feature && git log --graph --format=%s",
        "echo c >> README.md; git diff; git stash -q && git stash pop",
        "git commit -qam third && git tag v1 && git rebase -q HEAD~1 && git push --tags origin main",
        "git push -q near.git main && git ls-remote near.git",
        "git ls-remote origin && git pull --ff-only origin main",
        "git clean -nd; git stash list; git fsck; git gc -q; git status",
        "git init -q made && cd made && echo x > x && git add x && git commit -qm x && git log --format=%s",
        "cd .. && git clone -q . copied && git -C copied log --format=%s -n 1",
        "git apply <<'END'\ndiff --git a/src/a.txt b/src/a.txt\n--- a/src/a.txt\n+++ b/src/a.txt\n@@ -1 +1 @@\n-a\n+d\nEND\ngit checkout -- src/a.txt && git status --short",
    ],
};

/// Two thousand files.
pub const MANY: Sample = Sample {
    name: "many",
    make: |place| {
        for package in 0..40 {
            for number in 0..50 {
                place.write(&format!("packages/p{package}/src/f{number}.js"), &format!("exports.n = {number};\n"));
            }
        }
        place.write("packages/p7/src/f8.js", "// the needle\n");
        Vec::new()
    },
    lines: &[
        "git add -A && git commit -qm first && git status --short",
        "grep -rn needle . --exclude-dir=.git",
        "find . -path ./.git -prune -o -type f -name '*.js' -print | wc -l",
        "find . -path ./.git -prune -o ! -type f ! -type d -print",
        "ls -A",
        "n=$(ls packages | head -1); cat packages/$n/src/f1.js",
        "find packages -name 'f9.js' | xargs sed -i s/exports/module.exports/ && git diff --stat | tail -1",
        "git grep -c needle; git stash -q; git status --short",
        "cp -r packages/p7 copied && diff -r packages/p7 copied && rm -r copied; tar cf - . | tar t | grep -v '^./.git/' | sort",
        "cd packages && for d in p1 p2; do (cd $d && ls | wc -l); done",
        "cd ..; mkdir -p x/y && mv x z && rmdir z/y z; git status --short",
    ],
};

/// Servers that one call starts and the next asks.
pub const SERVER: Sample = Sample {
    name: "server",
    make: |place| {
        secrets(place);
        place.write(".gitignore", ".env\nsecrets/\n*.log\n");
        place.write("server.js", "require('http').createServer((q, a) => a.end('served ' + q.url + '\\n')).listen(0, '127.0.0.1', function () { require('fs').writeFileSync('port.log', String(this.address().port)); console.log('ready'); });\n");
        place.write("public/page.txt", "a page\n");
        Vec::new()
    },
    lines: &[
        "node server.js > server.log 2>&1 & echo $! > pid.log",
        "until grep -q ready server.log; do sleep 0.05; done; curl -s --noproxy '*' http://127.0.0.1:$(cat port.log)/x",
        "curl -s http://localhost:$(cat port.log)/y",
        "kill $(cat pid.log) && echo ended",
        "sleep 0.2; curl -s http://127.0.0.1:$(cat port.log)/z; echo $?",
        "python3 -m http.server --directory public --bind 127.0.0.1 $(cat port.log) > web.log 2>&1 & echo $! > pid.log",
        "for i in $(seq 100); do curl -sf http://127.0.0.1:$(cat port.log)/page.txt && break; sleep 0.05; done",
        "kill $(cat pid.log); rm *.log; git status --short",
    ],
};

/// Classes, an archive, a program.
pub const JAVA: Sample = Sample {
    name: "java",
    make: |place| {
        secrets(place);
        place.write(".gitignore", ".env\nsecrets/\nout/\n*.jar\n");
        place.write("src/a/Main.java", "package a;\npublic class Main { public static void main(String[] x) { System.out.println(new Part().two()); } }\n");
        place.write("src/a/Part.java", "package a;\nclass Part { int two() { return 2; } }\n");
        Vec::new()
    },
    lines: &[
        "javac -d out $(find src -name '*.java') && find out -type f | sort",
        "java -cp out a.Main",
        "jar cfe app.jar a.Main -C out . && java -jar app.jar",
        "git add -A && git commit -qm first && git status --short",
    ],
};
