//! Clients ask their hooks a little before they write down what those are asked about (measured: within 100 ms).
//!
//! Owns how long that is waited for. Invariant: 0.3 s at most.

use std::thread::sleep;
use std::time::Duration;

const PAUSE: Duration = Duration::from_millis(10);
const TIMES: u32 = 30;

/// Looks until something is there, or no longer.
pub fn wait_for<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    for attempt in 0..TIMES {
        if let Some(found) = look() {
            return Some(found);
        }
        if attempt + 1 < TIMES {
            sleep(PAUSE);
        }
    }
    None
}
