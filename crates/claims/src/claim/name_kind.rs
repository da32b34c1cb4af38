//! What a claimed name looks like: a file's for certain, a path's that may be something else, or a word's.
//!
//! Only such a name can speak against a claim (R51): a module (`pkg.mod`), a branch (`feature/login`), a package
//! (`@types/node`), a symbol (`self.run`) or a product (`Next.js`) stands in lists of files too, and is none.

use super::path::has_extension;
use super::words;

/// Endings of files' names.
const EXTENSIONS: &str = include_str!("extensions.txt");

/// Endings of files' names that code has too: `console.log`, `mock.patch`. They count in a folder, or behind another ending.
const CODE: &str = "app bak bin class config dat db diff dot env example har http inf info iso key lean less lib local log map move out patch pro res rest robot sample service shader snap so spec stub sum template test tmp ui war";

/// Names with such an ending that are no files.
const NO_FILES: &[&str] = &[
    "angular.js",
    "backbone.js",
    "chart.js",
    "d3.js",
    "docs.rs",
    "electron.js",
    "ember.js",
    "express.js",
    "moment.js",
    "next.js",
    "node.js",
    "nuxt.js",
    "p5.js",
    "react.js",
    "require.js",
    "socket.io",
    "solid.js",
    "three.js",
    "vue.js",
];

/// What a name looks like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NameKind {
    /// A file's, or a folder's.
    File,
    /// A path's that may be something else: `bin/run`, `feature/login`.
    Path,
    /// A word's.
    Word,
}

/// What `name`, as claimed, looks like.
pub fn name_kind(name: &str) -> NameKind {
    let folder = name.ends_with('/');
    let name = name.trim_end_matches('/');
    let (above, base) = name.rsplit_once('/').map_or((None, name), |(above, base)| (Some(above), base));
    let expanded = name.split('/').any(|part| {
        let rest = part.strip_prefix('$').unwrap_or_default();
        rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '{')
    });
    let place = name.starts_with("path/to/") || name.contains("/path/to/");
    // `scripts in package.json`, `GET /users.json`: quoted, and still prose.
    let prose = [" in ", " of ", " from ", " for ", " /"].iter().any(|words| name.contains(words));
    if expanded || place || prose || name.contains("()") {
        return NameKind::Word;
    }
    let file = words::known_name(base) || is_dotfile(base) || has_known_extension(base, above.is_some());
    match above {
        // `example.org/a.js` is an address unless there is such a folder.
        Some(above) if above.split('/').next().is_some_and(is_host) => NameKind::Path,
        Some(_) if file || folder => NameKind::File,
        Some(_) => NameKind::Path,
        None if file => NameKind::File,
        None if folder => NameKind::Path,
        None => NameKind::Word,
    }
}

fn is_host(first: &str) -> bool {
    first == "localhost" || (first.contains('.') && !first.starts_with('.'))
}

fn has_known_extension(base: &str, in_folder: bool) -> bool {
    let Some((stem, extension)) = base.rsplit_once('.').filter(|_| has_extension(base)) else { return false };
    let known = EXTENSIONS.split_whitespace().any(|known| known.eq_ignore_ascii_case(extension));
    // `U.S`, `Ph.D`; `run.R` is a file.
    if stem.len() < 3 && extension.len() == 1 && extension.starts_with(|c: char| c.is_ascii_uppercase()) {
        return false;
    }
    let told = in_folder || stem.contains('.') && has_known_extension(stem, false);
    let code = told && CODE.split(' ').any(|known| known.eq_ignore_ascii_case(extension));
    (known || code) && !NO_FILES.iter().any(|name| name.eq_ignore_ascii_case(base))
}

/// `.gitignore`, `.env.example`, `.eslintrc`; a style sheet's `.btn-primary` is none.
fn is_dotfile(base: &str) -> bool {
    let Some(rest) = base.strip_prefix('.').filter(|rest| !rest.is_empty()) else { return false };
    let endings =
        ["rc", "ignore", "attributes", "modules", "config", "version", "versions", "keep", "format", "tidy", "lint"];
    let names = [
        "env", "envrc", "flake8", "mailmap", "rspec", "htaccess", "htpasswd", "npmrc", "profile", "aflock", "github",
        "vscode", "gitlab",
    ];
    let first = rest.split('.').next().unwrap_or_default();
    names.contains(&first) || endings.iter().any(|ending| rest.ends_with(ending)) || has_known_extension(rest, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_from_words() {
        for file in [
            "a.py",
            "src/a.py",
            "Makefile",
            "deep/LICENSE",
            ".gitignore",
            ".env.example",
            ".eslintrc.json",
            "src/new/",
            "go.mod",
            "x.tar.gz",
            "app.js.map",
            "src/run.log",
            "main.TS",
            "docs/read me.md",
            "/tmp/a.c",
            "requirements.txt",
            ".github/workflows/ci.yml",
            "Cargo.lock",
            "CHANGELOG",
        ] {
            assert_eq!(name_kind(file), NameKind::File, "{file}");
        }
        for path in
            ["bin/run", "feature/login", "@types/node", "github.com/x/y", "example.org/a.js", "newdir/", "and/x"]
        {
            assert_eq!(name_kind(path), NameKind::Path, "{path}");
        }
        for word in [
            "pkg.mod",
            "com.example.App",
            "U.S",
            "scripts in package.json",
            "x",
            "documentation",
            "console.log",
            "process.env",
            "Next.js",
            "self.run",
            "tests.test_a.TestB",
            "$HOME/a.py",
            "${ROOT}/a.py",
            "path/to/file.py",
            "v2.x",
            "users.email",
            "example.com",
            ".btn-primary",
            "main",
            "os.path",
            "parse_args",
            "UserService",
            "feature-login",
            "a1b2c3d",
        ] {
            assert_eq!(name_kind(word), NameKind::Word, "{word}");
        }
    }
}
