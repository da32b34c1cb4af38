//! Who is connected, and who has to go when there are too many.
//!
//! Owns the places: so many in all, and so many for each who asks, so that nobody takes all of them. Refuses nobody that comes: of those
//! that hold most, the one that has named no host, or else the oldest, makes room. Invariant: no more hold a place than there are.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio_util::sync::CancellationToken;

/// Most connections at one time.
pub const ALL: usize = 1024;
/// Of these, most of one who asks, where that is known.
pub const EACH: usize = 256;

/// What can be asked of a connection.
pub trait Guest: Send + Sync {
    /// Whether it has not said yet where it leads.
    fn is_idle(&self) -> bool;
}

/// All of them, the oldest first.
pub struct Crowd {
    members: Mutex<Vec<Member>>,
    /// Of one who asks.
    each: usize,
}

struct Member {
    asker: Option<u64>,
    guest: Weak<dyn Guest>,
    gone: CancellationToken,
}

/// A place. It is free again when this is dropped.
pub struct Place {
    crowd: Arc<Crowd>,
    gone: CancellationToken,
}

impl Crowd {
    /// Without a word for who asks, all are one.
    pub fn new(each_is_known: bool) -> Self {
        Self { members: Mutex::default(), each: if each_is_known { EACH } else { ALL } }
    }

    /// A place for one more.
    pub fn enter(self: &Arc<Self>, asker: Option<u64>, guest: Weak<dyn Guest>) -> Place {
        let gone = CancellationToken::new();
        let mut members = self.members.lock().unwrap_or_else(PoisonError::into_inner);
        let of = |members: &[Member], asker| members.iter().filter(|member| member.asker == asker).count();
        let most = || members.iter().map(|member| member.asker).max_by_key(|asker| of(&members, *asker));
        let crowded = match of(&members, asker) {
            own if own >= self.each => Some(asker),
            _ if members.len() >= ALL => most(),
            _ => None,
        };
        if let Some(crowded) = crowded {
            let theirs = || members.iter().enumerate().filter(|(_, member)| member.asker == crowded);
            let idle = theirs().find(|(_, member)| member.guest.upgrade().is_none_or(|guest| guest.is_idle()));
            let place = idle.or_else(|| theirs().next()).map(|(place, _)| place);
            if let Some(place) = place {
                members.remove(place).gone.cancel();
            }
        }
        members.push(Member { asker, guest, gone: gone.clone() });
        Place { crowd: Arc::clone(self), gone }
    }
}

impl Place {
    /// Returns when somebody else needs it.
    pub async fn taken(&self) {
        self.gone.cancelled().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Tokens that were cloned from one another are one; who had to go is no member any more.
        self.gone.cancel();
        let mut members = self.crowd.members.lock().unwrap_or_else(PoisonError::into_inner);
        members.retain(|member| !member.gone.is_cancelled());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    struct One(AtomicBool);

    impl Guest for One {
        fn is_idle(&self) -> bool {
            self.0.load(Ordering::Relaxed)
        }
    }

    /// One that never goes, so that only its place does.
    fn one(idle: bool) -> Weak<dyn Guest> {
        let one: Arc<dyn Guest> = Arc::new(One(AtomicBool::new(idle)));
        let weak = Arc::downgrade(&one);
        std::mem::forget(one);
        weak
    }

    #[test]
    fn the_idle_of_those_that_hold_most_make_room() {
        let crowd = Arc::new(Crowd::new(true));
        let idle = one(true);
        let busy = one(false);
        let first = crowd.enter(Some(1), busy.clone());
        let crowded: Vec<_> = (0..3_000).map(|_| crowd.enter(Some(1), idle.clone())).collect();
        let other = crowd.enter(Some(2), idle.clone());
        assert_eq!(crowd.members.lock().unwrap().len(), EACH + 1);
        assert!(!first.gone.is_cancelled() && !other.gone.is_cancelled(), "who is at work stays, and who came later");
        assert_eq!(crowded.iter().filter(|place| !place.gone.is_cancelled()).count(), EACH - 1);
        drop((first, crowded));
        assert_eq!(crowd.members.lock().unwrap().len(), 1);
    }

    #[test]
    fn where_all_places_are_taken_the_greediest_gives_one() {
        let crowd = Arc::new(Crowd::new(true));
        let busy = one(false);
        let places: Vec<_> = (0..ALL).map(|at| crowd.enter(Some((at / EACH) as u64), busy.clone())).collect();
        let last = crowd.enter(Some(99), busy.clone());
        assert_eq!(crowd.members.lock().unwrap().len(), ALL);
        assert_eq!(places.iter().filter(|place| place.gone.is_cancelled()).count(), 1);
        assert!(!last.gone.is_cancelled());
    }
}
