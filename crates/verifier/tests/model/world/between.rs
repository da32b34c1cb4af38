//! What happens between two runs: to the clock, and to the files of caches.

use std::fs;

use super::{Watch, World};
use crate::reference::Disk;

impl World<'_> {
    pub fn jump(&mut self) {
        let ttl = self.settings.ttl.max(10_000);
        let ends: Vec<i64> = self.attestations.iter().filter_map(|made| made.att.expires_at).collect();
        if self.dice.chance(20) && !ends.is_empty() {
            // To the millisecond.
            self.now = *self.dice.pick(&ends) - self.dice.below(2) as i64;
            return;
        }
        self.now += match self.dice.below(8) {
            0..3 => self.dice.below(1_500) as i64,
            3 => ttl / 2,
            4 => ttl,
            5 => ttl * 3,
            6 => -(self.dice.below(2_000) as i64),
            _ => -ttl * 2,
        };
    }

    /// What happens to a cache file between two runs.
    pub fn meddle(&mut self, at: usize) {
        let path = self.path(at);
        let bytes = fs::read(&path).ok();
        let disk = self.reference.disk[at].clone();
        match (self.dice.below(8), bytes) {
            (0, Some(_)) => {
                fs::remove_file(&path).unwrap();
                self.reset(at, Disk::Missing);
            }
            // Damaged once more, it might be whole again.
            (1, Some(mut bytes)) if disk != Disk::Damaged => {
                let place = self.dice.below(bytes.len());
                match self.dice.below(3) {
                    0 => bytes.truncate(place),
                    1 => bytes[place] ^= 1 << self.dice.below(8),
                    _ => bytes.push(b'\n'),
                }
                fs::write(&path, bytes).unwrap();
                self.reset(at, Disk::Damaged);
            }
            (2..5, Some(bytes)) => self.backups.push((at, bytes, disk)),
            (5, _) if !self.backups.is_empty() => {
                let (at, bytes, disk) = self.dice.pick(&self.backups).clone();
                fs::create_dir_all(self.path(at).parent().unwrap()).unwrap();
                fs::write(self.path(at), bytes).unwrap();
                self.reset(at, disk);
            }
            _ => {}
        }
    }

    fn reset(&mut self, at: usize, disk: Disk) {
        self.reference.disk[at] = disk;
        self.forget(at);
    }

    pub fn forget(&mut self, at: usize) {
        self.watches[at] = Watch::default();
        self.inspected[at] = None;
    }
}
