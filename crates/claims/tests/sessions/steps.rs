//! What happens in a session, one step at random after the other.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use writ_claims::Act;

use super::repository::git;
use super::{Deed, Session};

impl Session {
    fn rename(&mut self) {
        let Some(old) = self.existing() else { return };
        let new = self.fresh();
        if old.starts_with("sub/") != new.starts_with("sub/") {
            return;
        }
        let from: Option<String> = self.deeds.iter().find_map(|(deed, _)| match deed {
            Deed::Renamed(first, second) if *second == old => Some(first.clone()),
            Deed::File(_) | Deed::Renamed(..) | Deed::Never(_) => None,
        });
        fs::create_dir_all(self.at(&new).parent().unwrap()).unwrap();
        let moved = self.rng.chance(50) && git(&self.root, &["mv", &old, &new]);
        if !moved {
            fs::rename(self.at(&old), self.at(&new)).unwrap();
        }
        self.script.push(format!("mv {old} {new}"));
        self.touched(&[&old, &new]);
        self.gone(&old);
        let origin = self.origin.contains(&old).then(|| old.clone()).or(from);
        self.did(origin.map_or_else(|| Deed::File(new.clone()), |origin| Deed::Renamed(origin, new.clone())));
        self.names.push(new);
    }

    pub fn commit(&mut self) {
        let line = self.rng.pick(&["commit -qm work", "commit -qm work", "commit -q --amend -m work"]);
        if self.git("add -A") && self.git(line) {
            self.keep();
        }
    }

    pub fn step(&mut self) {
        match self.rng.below(24) {
            0..=4 => {
                if let Some(name) = self.existing() {
                    let text = self.text();
                    self.wrote(&name, &text);
                }
            }
            5..=8 => {
                let (name, text) = (self.fresh(), self.text());
                self.names.push(name.clone());
                self.wrote(&name, &text);
            }
            9 => self.delete(),
            10 | 11 => self.rename(),
            12 | 13 => self.commit(),
            14 => self.stash(),
            15 => self.branch(),
            16 => self.reset(),
            17 => self.link(),
            18 => self.mode(),
            19 => self.nested(),
            20 => self.worktree(),
            21 => self.same(),
            22 => self.elsewhere(),
            _ => self.somebody(),
        }
    }

    fn delete(&mut self) {
        let Some(name) = self.existing() else { return };
        if !(self.rng.chance(40) && git(&self.root, &["rm", "-q", "-f", &name])) {
            fs::remove_file(self.at(&name)).unwrap();
        }
        self.script.push(format!("rm {name}"));
        self.touched(&[&name]);
        self.gone(&name);
        if self.origin.contains(&name) {
            self.did(Deed::File(name));
        }
    }

    fn stash(&mut self) {
        self.acts.push(Act::Unknown);
        let line = self.rng.pick(&["stash -q", "stash -q -u"]);
        if self.git(line) {
            self.keep();
            if self.rng.chance(60) {
                self.git("stash pop -q");
            } else {
                self.stashed = true;
            }
        }
    }

    fn branch(&mut self) {
        self.serial += 1;
        self.acts.push(Act::Unknown);
        if !self.git(&format!("checkout -q -b topic{}", self.serial)) {
            return;
        }
        let (name, text) = (self.fresh(), self.text());
        self.names.push(name.clone());
        self.wrote(&name, &text);
        if self.rng.chance(70) {
            self.commit();
        }
        self.acts.push(Act::Unknown);
        if self.rng.chance(70) {
            self.git("checkout -q main");
        }
    }

    fn reset(&mut self) {
        self.acts.push(Act::Unknown);
        let how = self.rng.pick(&["--soft", "--mixed", "--hard"]);
        if self.git(&format!("reset -q {how} HEAD")) && how == "--hard" {
            self.deeds.retain(|(_, safe)| *safe);
        }
    }

    fn link(&mut self) {
        let name = self.fresh();
        let target = self.rng.pick(&["a.py", "src", "nowhere"]);
        fs::create_dir_all(self.at(&name).parent().unwrap()).unwrap();
        symlink(target, self.at(&name)).unwrap();
        self.script.push(format!("ln -s {target} {name}"));
        self.touched(&[&name]);
        self.did(Deed::File(name));
    }

    fn mode(&mut self) {
        let Some(name) = self.existing() else { return };
        fs::set_permissions(self.at(&name), fs::Permissions::from_mode(0o755)).unwrap();
        self.script.push(format!("chmod +x {name}"));
        self.touched(&[&name]);
        self.did(Deed::File(name));
    }

    fn nested(&mut self) {
        self.serial += 1;
        let inner = format!("inner{}", self.serial);
        let text = self.text();
        self.wrote(&format!("{inner}/i.py"), &text);
        self.acts.push(Act::Unknown);
        self.git(&format!("init -q {inner}"));
        if self.rng.chance(50) {
            self.git(&format!("-C {inner} add ."));
            self.git(&format!("-C {inner} commit -qm inner"));
        }
        self.keep();
    }

    /// Work in a second work tree, which may be gone again at the end: its commits are not.
    fn worktree(&mut self) {
        self.serial += 1;
        let (branch, name) = (format!("wt{}", self.serial), format!("tree{}.py", self.serial));
        let top = self.outside.path().join(&branch).to_str().unwrap().to_owned();
        self.acts.push(Act::Unknown);
        if !self.git(&format!("worktree add -q -b {branch} {top}")) {
            return;
        }
        let text = self.text();
        fs::write(Path::new(&top).join(&name), &text).unwrap();
        self.script.push(format!("put {top}/{name}"));
        self.acts.push(Act::Wrote { path: Path::new(&top).join(&name), content: text });
        if self.rng.chance(60) {
            self.git(&format!("-C {top} add ."));
            self.git(&format!("-C {top} commit -qm tree"));
            if self.rng.chance(60) {
                self.acts.push(Act::Unknown);
                self.git(&format!("worktree remove {top}"));
            }
        }
        self.deeds.push((Deed::File(name), true));
    }

    /// A file written as it was.
    fn same(&mut self) {
        let Some(name) = self.existing() else { return };
        let text = fs::read_to_string(self.at(&name)).unwrap();
        self.wrote(&name, &text);
    }

    /// Outside the repository: named in full, or as if it were inside, as whoever works in a copy does.
    fn elsewhere(&mut self) {
        let (name, text) = (self.fresh(), self.text());
        let path = self.outside.path().join(&name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &text).unwrap();
        self.script.push(format!("put {}", path.display()));
        self.acts.push(Act::Wrote { path: path.clone(), content: text });
        self.deeds.push((Deed::File(path.to_str().unwrap().to_owned()), true));
    }

    /// Somebody else works on the same tree.
    fn somebody(&mut self) {
        self.script.push("somebody:".to_owned());
        let text = self.text();
        match self.rng.below(3) {
            0 => self.put("theirs/later.py", &text),
            1 => {
                if let Some(name) = self.existing() {
                    self.put(&name, &text);
                }
            }
            _ => {
                if self.git("add -A") && self.git("commit -qm theirs") {
                    self.keep();
                }
            }
        }
    }
}
