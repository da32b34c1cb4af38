//! `writ session open`: a session in the terminal.
//!
//! Owns the loop: keys in, a picture out, and a look at the record now and then while the session goes on. Refuses anything but a terminal.
//! Invariant: every text from the record is made visible before it is drawn, and the terminal is as it was afterwards.

mod draw;
mod state;

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use writ_engine::view::View;

use self::state::{Next, State};
use crate::args::OpenArgs;
use crate::commands::session_lookup::{session, store};
use crate::environment;
use crate::exit::Failure;

/// How long between two looks at the record.
const LOOK: Duration = Duration::from_millis(500);

/// Opens it, until a key ends it.
pub fn run(args: &OpenArgs) -> Result<(), Failure> {
    if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        return Err(Failure::could_not(
            "this needs a terminal: `writ session show` prints the rows, `writ report` writes a page",
        ));
    }
    let store = store(&environment::home())?;
    let id = session(&store, args.session.as_deref())?;
    let view = View::of(&store, &id).map_err(Failure::could_not)?;
    let mut state = State::new(view, args.search.clone().unwrap_or_default());
    let mut terminal = ratatui::try_init().map_err(Failure::could_not)?;
    let mut looked = Instant::now();
    let ended = loop {
        if let Err(error) = terminal.draw(|frame| draw::draw(frame, &mut state)) {
            break Err(Failure::could_not(error));
        }
        match event::poll(LOOK) {
            Ok(true) => match event::read() {
                Ok(Event::Key(key)) if key.kind != KeyEventKind::Release => {
                    if acted(&mut state, key) == Next::End {
                        break Ok(());
                    }
                }
                Ok(_) => {}
                Err(error) => break Err(Failure::could_not(error)),
            },
            Ok(false) => {}
            Err(error) => break Err(Failure::could_not(error)),
        }
        if looked.elapsed() >= LOOK && !state.view.ended {
            looked = Instant::now();
            let behind = state.view.is_behind(&store, &id);
            match behind
                .and_then(|behind| if behind { state.view.follow(&store, &id).map(|_| true) } else { Ok(false) })
            {
                Ok(true) => state.grown(),
                Ok(false) => {}
                Err(error) => break Err(Failure::could_not(error)),
            }
        }
    };
    ratatui::restore();
    ended
}

fn acted(state: &mut State, key: KeyEvent) -> Next {
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return if key.code == KeyCode::Char('c') { Next::End } else { Next::Go };
    }
    if state.typing {
        state.typed(key.code);
        return Next::Go;
    }
    match key.code {
        KeyCode::Char('q') => return Next::End,
        KeyCode::Esc if state.search.is_empty() => return Next::End,
        KeyCode::Esc => state.set_search(String::new()),
        KeyCode::Char('/') => state.typing = true,
        KeyCode::Char('f') => state.next_filter(),
        KeyCode::Tab => state.next_pane(true),
        KeyCode::BackTab => state.next_pane(false),
        KeyCode::Char(digit @ '1'..='5') => state.pane_at(digit),
        KeyCode::Down | KeyCode::Char('j') => state.step(1),
        KeyCode::Up | KeyCode::Char('k') => state.step(-1),
        KeyCode::PageDown | KeyCode::Char(' ') => state.step(20),
        KeyCode::PageUp => state.step(-20),
        KeyCode::Home | KeyCode::Char('g') => state.jump(false),
        KeyCode::End | KeyCode::Char('G') => state.jump(true),
        KeyCode::Char('n') => state.next_stopped(),
        _ => {}
    }
    Next::Go
}
