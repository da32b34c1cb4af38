//! A page that is never swapped out, dumped or inherited.

use std::fmt;
use std::ptr::NonNull;

use rustix::io::Errno;

use super::{check, last};

/// Bytes of a secret.
pub const SECRET: usize = 32;
/// Bytes of a page, on every platform Writ is built for at most.
const PAGE: usize = 4096;

/// A secret in a page of its own.
pub struct Locked(NonNull<[u8; SECRET]>);

// SAFETY: the page belongs to this value alone, and is only read once it is made.
unsafe impl Send for Locked {}
// SAFETY: as above.
unsafe impl Sync for Locked {}

impl Locked {
    /// Makes a page and has its bytes filled in, so that they never were anywhere else.
    pub fn fill<E>(fill: impl FnOnce(&mut [u8; SECRET]) -> Result<(), E>) -> Result<Result<Self, E>, Errno> {
        let (rights, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping at a place of the kernel's choice touches nothing that is there.
        let page = unsafe { libc::mmap(std::ptr::null_mut(), PAGE, rights, kind, -1, 0) };
        if page == libc::MAP_FAILED {
            return Err(last());
        }
        let Some(secret) = NonNull::new(page.cast()) else { return Err(Errno::NOMEM) };
        let mut locked = Self(secret);
        // SAFETY: the page was just mapped with this length, and unmapping it is left to `drop`.
        check(unsafe { libc::mlock(page, PAGE) }.into())?;
        for advice in [libc::MADV_DONTDUMP, libc::MADV_DONTFORK] {
            // SAFETY: as above; neither advice changes what the page holds.
            check(unsafe { libc::madvise(page, PAGE, advice) }.into())?;
        }
        // SAFETY: the page is mapped, zeroed, aligned to more than bytes need, and nothing else knows it.
        let filled = fill(unsafe { locked.0.as_mut() });
        Ok(filled.map(|()| locked))
    }

    /// The secret.
    pub const fn get(&self) -> &[u8; SECRET] {
        // SAFETY: the page lives as long as this value, and nobody writes to it any more.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // SAFETY: the page is this value's, was mapped with this length, and nothing refers to it from here on. The kernel gives it to nobody
        // without clearing it.
        unsafe { libc::munmap(self.0.as_ptr().cast(), PAGE) };
    }
}

impl fmt::Debug for Locked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Locked")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_stays_where_it_was_filled_in() {
        let fill = |bytes: &mut [u8; SECRET]| -> Result<(), ()> {
            bytes.fill(7);
            Ok(())
        };
        let locked = Locked::fill(fill).unwrap().unwrap();
        assert_eq!(locked.get(), &[7; SECRET]);
        assert_eq!(format!("{locked:?}"), "Locked");
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let place = format!("{:x}", locked.0.as_ptr() as usize);
        let flags = maps.split_once(&place).unwrap().1.split("VmFlags:").nth(1).unwrap();
        let flags = flags.lines().next().unwrap();
        for flag in [" lo", " dd", " dc"] {
            assert!(flags.contains(flag), "{flags}");
        }
        assert_eq!(Locked::fill(|_| Err("no")).unwrap().unwrap_err(), "no");
    }
}
