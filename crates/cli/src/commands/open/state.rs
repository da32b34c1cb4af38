//! What is open, what of it is shown, and where one stands in it.

use ratatui::crossterm::event::KeyCode;
use writ_engine::view::{Became, Entry, Kind, View};

/// Longest text that is searched for.
const LONGEST: usize = 200;

/// What comes after a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Go,
    End,
}

/// What is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pane {
    Timeline,
    Files,
    Hosts,
    Spend,
    Claims,
}

impl Pane {
    pub const ALL: [Self; 5] = [Self::Timeline, Self::Files, Self::Hosts, Self::Spend, Self::Claims];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Timeline => "timeline",
            Self::Files => "files",
            Self::Hosts => "hosts",
            Self::Spend => "spend",
            Self::Claims => "claims",
        }
    }
}

/// Which entries are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    All,
    Calls,
    Stopped,
    Failed,
    Prompts,
}

impl Filter {
    pub const ALL: [Self; 5] = [Self::All, Self::Calls, Self::Stopped, Self::Failed, Self::Prompts];

    pub const fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Calls => "calls",
            Self::Stopped => "stopped",
            Self::Failed => "failed",
            Self::Prompts => "prompts",
        }
    }

    fn takes(self, entry: &Entry) -> bool {
        match self {
            Self::All => true,
            Self::Calls => entry.kind == Kind::Call,
            Self::Stopped => is_stopped(entry),
            Self::Failed => entry.failed == Some(true),
            Self::Prompts => entry.kind == Kind::Prompt,
        }
    }
}

/// Whether it was asked about or denied.
pub const fn is_stopped(entry: &Entry) -> bool {
    matches!(entry.became, Became::Asked | Became::Denied | Became::NoTool)
}

/// The window onto a session.
pub struct State {
    pub view: View,
    pub pane: Pane,
    pub filter: Filter,
    pub search: String,
    /// Whether keys go into the search.
    pub typing: bool,
    /// The lines of the pane, as many as are shown: places among the entries, or texts' places.
    pub shown: Vec<usize>,
    /// Which of them one stands on.
    pub at: usize,
    /// The first line that is drawn.
    pub top: usize,
    /// Stands at the end, and goes along with it.
    follows: bool,
}

impl State {
    /// A session from its beginning, or its end where it goes on.
    pub fn new(view: View, search: String) -> Self {
        let follows = !view.ended;
        let (pane, filter) = (Pane::Timeline, Filter::All);
        let mut out = Self { view, pane, filter, search, typing: false, shown: Vec::new(), at: 0, top: 0, follows };
        out.refresh();
        if follows {
            out.jump(true);
        }
        out
    }

    /// There are more rows.
    pub fn grown(&mut self) {
        let follows = self.follows;
        self.refresh();
        if follows {
            self.jump(true);
        }
    }

    fn refresh(&mut self) {
        let wanted = self.search.to_lowercase();
        let holds = |text: &str| wanted.is_empty() || text.to_lowercase().contains(&wanted);
        self.shown = match self.pane {
            Pane::Timeline => {
                let entries = self.view.entries.iter().enumerate();
                let wanted = entries.filter(|(_, entry)| self.filter.takes(entry) && holds(&whole(entry)));
                wanted.map(|(at, _)| at).collect()
            }
            Pane::Files => places(self.view.files.keys().map(|path| holds(path))),
            Pane::Hosts => places(self.view.hosts.keys().map(|host| holds(host))),
            Pane::Claims => places(self.view.claims.iter().map(|claim| holds(&claim.text))),
            Pane::Spend => Vec::new(),
        };
        self.at = self.at.min(self.shown.len().saturating_sub(1));
    }

    /// The entry one stands on.
    pub fn entry(&self) -> Option<&Entry> {
        (self.pane == Pane::Timeline).then(|| self.view.entries.get(*self.shown.get(self.at)?)).flatten()
    }

    pub fn set_search(&mut self, text: String) {
        self.search = text;
        self.refresh();
    }

    /// A key that goes into the search.
    pub fn typed(&mut self, key: KeyCode) {
        match key {
            KeyCode::Enter => self.typing = false,
            KeyCode::Esc => {
                self.typing = false;
                self.set_search(String::new());
            }
            KeyCode::Backspace => {
                let mut text = self.search.clone();
                text.pop();
                self.set_search(text);
            }
            KeyCode::Char(c) if self.search.len() < LONGEST => self.set_search(format!("{}{c}", self.search)),
            _ => {}
        }
    }

    pub fn next_filter(&mut self) {
        let at = Filter::ALL.iter().position(|filter| *filter == self.filter).unwrap_or_default();
        self.filter = Filter::ALL.get(at + 1).copied().unwrap_or(Filter::All);
        self.refresh();
    }

    pub fn next_pane(&mut self, on: bool) {
        let at = Pane::ALL.iter().position(|pane| *pane == self.pane).unwrap_or_default();
        let to = if on { at + 1 } else { at + Pane::ALL.len() - 1 };
        self.go_to(Pane::ALL.get(to % Pane::ALL.len()).copied());
    }

    pub fn pane_at(&mut self, digit: char) {
        let at = digit.to_digit(10).and_then(|digit| usize::try_from(digit).ok()?.checked_sub(1));
        self.go_to(at.and_then(|at| Pane::ALL.get(at).copied()));
    }

    fn go_to(&mut self, pane: Option<Pane>) {
        if let Some(pane) = pane {
            (self.pane, self.at, self.top) = (pane, 0, 0);
            self.refresh();
        }
    }

    pub fn step(&mut self, by: isize) {
        self.at = self.at.saturating_add_signed(by).min(self.shown.len().saturating_sub(1));
        self.follows = !self.view.ended && self.at + 1 == self.shown.len();
    }

    pub fn jump(&mut self, to_end: bool) {
        self.at = if to_end { self.shown.len().saturating_sub(1) } else { 0 };
        self.follows = to_end && !self.view.ended;
    }

    /// To the next call that was stopped.
    pub fn next_stopped(&mut self) {
        if self.pane != Pane::Timeline {
            return;
        }
        let stops = |at: &usize| self.view.entries.get(*at).is_some_and(is_stopped);
        let behind = self.shown.iter().skip(self.at + 1).position(stops).map(|found| self.at + 1 + found);
        if let Some(at) = behind.or_else(|| self.shown.iter().position(stops)) {
            self.at = at;
            self.follows = false;
        }
    }
}

fn places(holds: impl Iterator<Item = bool>) -> Vec<usize> {
    holds.enumerate().filter(|(_, holds)| *holds).map(|(at, _)| at).collect()
}

/// Everything of an entry that is searched.
fn whole(entry: &Entry) -> String {
    let reasons = entry
        .reasons
        .iter()
        .map(|told| format!("{} {} {}", told.rule, told.text.as_deref().unwrap_or_default(), told.message));
    let agent = entry.agent.as_deref().unwrap_or_default();
    format!("{} {} {agent} {}", entry.name, entry.what, reasons.collect::<Vec<_>>().join(" "))
}
