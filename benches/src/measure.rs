//! Clocks, figures and how they are printed.

use std::fmt;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// How long one measurement of [`per_call`] goes on.
const TIME: Duration = Duration::from_millis(600);
/// How long one of its batches takes, at least: far above what the clock can tell.
const BATCH: Duration = Duration::from_millis(2);

/// What a figure has to stay within.
#[derive(Clone, Copy)]
pub enum Bar {
    /// No bar.
    None,
    /// At most this long.
    AtMost(Duration),
    /// At most so many times the baseline's time.
    TimesBaseline(f64),
    /// At most this much longer than the baseline.
    AboveBaseline(Duration),
    /// At least this part of the baseline's speed.
    SpeedOfBaseline(f64),
}

/// One figure and the baseline it was measured with.
pub struct Figure {
    /// What was measured.
    pub name: String,
    /// How long it took.
    pub value: Duration,
    /// What the baseline is.
    pub baseline: &'static str,
    /// How long that took.
    pub baseline_value: Duration,
    /// What the figure has to stay within.
    pub bar: Bar,
    /// Bytes gone through, for figures that are speeds.
    pub bytes: Option<usize>,
}

impl Figure {
    /// A figure that is a time.
    pub fn time(name: impl Into<String>, value: Duration, baseline: (&'static str, Duration), bar: Bar) -> Self {
        Self { name: name.into(), value, baseline: baseline.0, baseline_value: baseline.1, bar, bytes: None }
    }

    fn shown(&self, time: Duration) -> String {
        match self.bytes {
            Some(bytes) => format!("{:.0} MB/s", bytes as f64 / time.as_secs_f64() / 1e6),
            None => shown(time),
        }
    }

    fn verdict(&self) -> String {
        let (within, bar) = match self.bar {
            Bar::None => return "-".to_owned(),
            Bar::AtMost(limit) => (self.value <= limit, format!("≤ {}", shown(limit))),
            Bar::TimesBaseline(times) => (self.value <= self.baseline_value.mul_f64(times), format!("≤ {times} ×")),
            Bar::AboveBaseline(more) => {
                (self.value <= self.baseline_value + more, format!("≤ baseline + {}", shown(more)))
            }
            Bar::SpeedOfBaseline(part) => {
                (self.baseline_value >= self.value.mul_f64(part), format!("≥ {:.0} % of the speed", part * 100.0))
            }
        };
        format!("{bar}  {}", if within { "ok" } else { "OVER" })
    }
}

/// The names of the columns.
pub fn header() -> String {
    format!("{:<38} {:>12}  {:<34} {:>12} {:>8}  bar", "name", "value", "baseline", "", "ratio")
}

impl fmt::Display for Figure {
    /// The ratio is figure to baseline, in time: 2.00 is twice as long.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ratio = self.value.as_secs_f64() / self.baseline_value.as_secs_f64();
        let (value, baseline) = (self.shown(self.value), self.shown(self.baseline_value));
        write!(
            f,
            "{:<38} {value:>12}  {:<34} {baseline:>12} {ratio:>8.2}  {}",
            self.name,
            self.baseline,
            self.verdict()
        )
    }
}

fn shown(time: Duration) -> String {
    let nanos = time.as_secs_f64() * 1e9;
    match nanos {
        _ if nanos < 1e3 => format!("{nanos:.0} ns"),
        _ if nanos < 1e6 => format!("{:.2} µs", nanos / 1e3),
        _ => format!("{:.2} ms", nanos / 1e6),
    }
}

/// How long one call of `work` takes: the median over batches, after a warm-up.
pub fn per_call<T>(mut work: impl FnMut() -> T) -> Duration {
    let mut batch = 1u32;
    while time_of(batch, &mut work) < BATCH && batch < 1 << 24 {
        batch *= 2;
    }
    let start = Instant::now();
    let mut times = Vec::new();
    while times.len() < 5 || start.elapsed() < TIME {
        times.push(time_of(batch, &mut work) / batch);
    }
    percentile(&mut times, 50)
}

fn time_of<T>(batch: u32, work: &mut impl FnMut() -> T) -> Duration {
    let start = Instant::now();
    for _ in 0..batch {
        black_box(work());
    }
    start.elapsed()
}

/// The time that `percent` of `times` do not exceed; zero of none.
pub fn percentile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort_unstable();
    let place = (times.len() * percent).div_ceil(100).saturating_sub(1);
    times.get(place).copied().unwrap_or_default()
}
