//! What of a change would run outside later, by its name.
//!
//! Owns the names and why; decides nothing. Invariant: names are compared without regard to case, since some disks have none.

use std::path::{Component, Path};

use super::changes::Change;
use super::tree::{Kind, Node};
use crate::confine::places::{GIT_OBEYS, KEPT, KEPT_IF_THERE};

/// Files whose lines run when somebody builds, tests, installs or opens the folder.
const BUILDS: [&str; 71] = [
    "package.json",
    "makefile",
    "gnumakefile",
    "justfile",
    "taskfile.yml",
    "taskfile.yaml",
    "rakefile",
    "gemfile",
    "build.rs",
    "cargo.toml",
    "setup.py",
    "setup.cfg",
    "pyproject.toml",
    "conftest.py",
    "tox.ini",
    "noxfile.py",
    "sitecustomize.py",
    "usercustomize.py",
    "build.gradle",
    "build.gradle.kts",
    "settings.gradle",
    "settings.gradle.kts",
    "gradlew",
    "pom.xml",
    "mvnw",
    "cmakelists.txt",
    "configure",
    "meson.build",
    "build.xml",
    "flake.nix",
    "shell.nix",
    "default.nix",
    "dockerfile",
    "docker-compose.yml",
    "docker-compose.yaml",
    "compose.yaml",
    "jenkinsfile",
    ".gitlab-ci.yml",
    ".travis.yml",
    ".pre-commit-config.yaml",
    ".npmrc",
    ".yarnrc.yml",
    "rust-toolchain.toml",
    "lefthook.yml",
    ".justfile",
    "build",
    "workspace",
    "build.bazel",
    "module.bazel",
    ".bazelrc",
    "sconstruct",
    "build.sbt",
    "composer.json",
    "package.swift",
    "go.mod",
    "tiltfile",
    "vagrantfile",
    "azure-pipelines.yml",
    ".yarnrc",
    ".pnp.cjs",
    ".pnpmfile.cjs",
    "gulpfile.js",
    "gruntfile.js",
    ".eslintrc.js",
    ".eslintrc.cjs",
    ".devcontainer.json",
    ".exrc",
    ".nvim.lua",
    ".dir-locals.el",
    ".gdbinit",
    ".tool-versions",
];
/// Tools whose configuration is a program, `<tool>.config.<js, ts …>`: who tests, bundles, or opens the folder runs it.
const CONFIGURED: [&str; 14] = [
    "jest",
    "vite",
    "vitest",
    "webpack",
    "rollup",
    "babel",
    "eslint",
    "playwright",
    "next",
    "nuxt",
    "svelte",
    "astro",
    "postcss",
    "tailwind",
];
/// What later agents are told.
const TOLD: [&str; 6] = ["claude.md", "agents.md", "gemini.md", "qwen.md", ".cursorrules", "copilot-instructions.md"];
/// Folders of the same kind.
const FOLDERS: [(&str, &str); 10] = [
    (".github/workflows", "CI"),
    (".circleci", "CI"),
    (".buildkite", "CI"),
    (".husky", "git hooks"),
    (".devcontainer", "editors' tasks"),
    (".cargo", "build"),
    (".mvn", "build"),
    (".yarn", "build"),
    (".mise", OBEYED),
    (".fleet", "editors' tasks"),
];
/// Folders from which programs are taken.
const PROGRAMS: [&str; 4] = ["node_modules/.bin", ".venv/bin", "venv/bin", "env/bin"];
/// Endings of files that say how something is built or run.
const ENDINGS: [&str; 8] = ["mk", "cmake", "gradle", "csproj", "vcxproj", "pth", "service", "code-workspace"];

const OBEYED: &str = "shells, editors or clients obey it";
const PROGRAM: &str = "a program that is found by its name";

/// Why a change is looked at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Later {
    /// In a few words.
    pub why: &'static str,
    /// Whether it is applied only where a human says so.
    pub protected: bool,
}

/// What would run because of a change.
pub fn of(change: &Change) -> Option<Later> {
    let later = |why, protected| Some(Later { why, protected });
    let parts: Vec<String> = parts(&change.name);
    let git = change.git.as_ref().map(|git| self::parts(git).len());
    if let Some(own) = git.and_then(|length| parts.get(length..)).filter(|own| is_obeyed(own)) {
        return later(if own.first().is_some_and(|name| name == "hooks") { "git hook" } else { "git obeys it" }, true);
    }
    let file = change.after.as_ref().filter(|node| node.kind == Kind::File);
    let before = change.before.as_ref().map_or(0, Node::mode);
    let newly = |bits: u32| file.is_some_and(|node| node.mode() & bits & !before != 0);
    if newly(0o6000) {
        return later("runs as its owner (setuid, setgid)", true);
    }
    if is_kept(&parts) {
        return later(OBEYED, true);
    }
    if parts.last().is_some_and(|name| name == ".git")
        && change.after.as_ref().is_some_and(|after| after.kind != Kind::Folder)
    {
        return later("git obeys it", true);
    }
    if let Some(why) = built(&parts) {
        return later(why, false);
    }
    if newly(0o111) { later("can be run now", false) } else { None }
}

/// What would run because a file of this name was changed; what is installed for a build stands for itself.
pub fn by_name(path: &Path) -> Option<&'static str> {
    let parts = parts(path);
    let installed = parts.iter().any(|part| matches!(part.as_str(), "node_modules" | "site-packages"));
    let why = if is_kept(&parts) { Some(OBEYED) } else { built(&parts) };
    why.filter(|why| !installed || *why == PROGRAM)
}

/// Whether shells, editors or clients obey a file of this name.
pub fn is_obeyed_by_others(path: &Path) -> bool {
    is_kept(&parts(path))
}

fn is_kept(parts: &[String]) -> bool {
    let kept = KEPT.iter().chain(&KEPT_IF_THERE).map(|name| name.trim_end_matches('/'));
    kept.into_iter().any(|name| parts.iter().any(|part| part == name))
}

/// What builds or runs it.
fn built(parts: &[String]) -> Option<&'static str> {
    let joined = format!("/{}/", parts.join("/"));
    if let Some((_, why)) = FOLDERS.iter().find(|(name, _)| joined.contains(&format!("/{name}/"))) {
        return Some(why);
    }
    if PROGRAMS.iter().any(|name| joined.contains(&format!("/{name}/"))) {
        return Some(PROGRAM);
    }
    let name = parts.last().map_or("", String::as_str);
    if name == "git-rebase-todo" {
        return Some("git runs its lines as the rebase goes on");
    }
    if TOLD.contains(&name) {
        return Some("later agents are told what it says");
    }
    let ending = Path::new(name).extension().and_then(|ending| ending.to_str());
    if name.split_once(".config.").is_some_and(|(tool, _)| CONFIGURED.contains(&tool)) {
        return Some("build");
    }
    (BUILDS.contains(&name) || ending.is_some_and(|ending| ENDINGS.contains(&ending))).then_some("build")
}

/// Whether git runs or obeys a name in its folder.
fn is_obeyed(own: &[String]) -> bool {
    let Some(first) = own.first() else { return false };
    let joined = own.join("/");
    first == "worktrees"
        || GIT_OBEYS.iter().any(|name| match name.strip_suffix('/') {
            Some(folder) => first == folder,
            None => joined == *name,
        })
}

fn parts(path: &Path) -> Vec<String> {
    let names = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_string_lossy().to_ascii_lowercase()),
        Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => None,
    });
    names.collect()
}
