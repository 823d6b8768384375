//! A toy lock service, as a program with threads has it, recorded through `tracing` and judged.
//! Its storage checks no token: a leader that is held up for longer than its lease lasts writes
//! when it wakes, over what its successor wrote.
//!
//! ```sh
//! cargo run -p deposed-checkers --features tracing --example late_write
//! ```

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use deposed_checkers::history::Header;
use deposed_checkers::judge::Judge;
use deposed_checkers::reader::Reader;
use deposed_checkers::recording::Recording;
use deposed_checkers::verdict::{Verdict, Verdicts};
use tracing::field::Empty;
use tracing_subscriber::layer::SubscriberExt;

const TTL: Duration = Duration::from_millis(20);
const HISTORY: &str = "deposed::history";

/// Grants the lease to one holder at a time. Each grant has a token of its own.
struct Store {
    start: Instant,
    last: Mutex<Granted>,
}

struct Granted {
    token: u64,
    until: Instant,
}

impl Store {
    fn acquire(&self, holder: &str) -> Option<u64> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let now = now();
        if now < last.until {
            return None;
        }
        last.token += 1;
        last.until = now + TTL;
        // Told under the lock, so that grants are told in the order in which they happen.
        tracing::info!(
            name: "granted", target: HISTORY, process = "store", lease = "leader", holder,
            token = last.token, ttl = TTL.as_nanos(), clock = (now - self.start).as_nanos(),
        );
        Some(last.token)
    }
}

/// One value, and no memory of tokens: the flaw.
struct Storage(Mutex<String>);

impl Storage {
    fn fence(&self, token: u64) {
        let _held = self.0.lock();
        tracing::info!(
            name: "fenced", target: HISTORY, process = "storage", lease = "leader", token,
        );
    }

    fn write(&self, token: u64, value: &str) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        value.clone_into(&mut held);
        tracing::info!(
            name: "applied", target: HISTORY, process = "storage",
            f = "write", lease = "leader", token, key = "x", value,
        );
    }
}

/// A client, as the program would have it anyway; the spans are what is added.
struct Client<'a> {
    name: &'static str,
    store: &'a Store,
    storage: &'a Storage,
}

impl Client<'_> {
    fn acquire(&self) -> Option<u64> {
        let call = tracing::info_span!(
            target: HISTORY, "acquire", process = self.name, lease = "leader", holder = self.name,
            ttl = TTL.as_nanos(), token = Empty, error = Empty, outcome = Empty,
        );
        let token = self.store.acquire(self.name);
        match token {
            Some(token) => tracing::record_all!(call, token, outcome = "ok"),
            None => tracing::record_all!(call, error = "held", outcome = "fail"),
        };
        token
    }

    fn fence(&self, token: u64) {
        let call = tracing::info_span!(
            target: HISTORY, "fence", process = self.name, lease = "leader", token, outcome = Empty,
        );
        self.storage.fence(token);
        call.record("outcome", "ok");
    }

    fn write(&self, token: u64, value: &str) {
        let call = tracing::info_span!(
            target: HISTORY, "write", process = self.name, lease = "leader", token, key = "x",
            value, outcome = Empty,
        );
        self.storage.write(token, value);
        call.record("outcome", "ok");
    }

    /// Leads, and is held up between its fence and its write, as by a collection of garbage.
    fn leads_and_is_held_up(&self, leads: &Sender<()>, go_on: &Receiver<()>) {
        let token = self.acquire().expect("nobody else has asked");
        self.fence(token);
        let _ = leads.send(());
        let _ = go_on.recv();
        self.write(token, "of the leader that was");
    }

    /// Leads as soon as the lease is free, and then lets the other go on.
    fn takes_over(&self, leads: &Receiver<()>, go_on: &Sender<()>) {
        let _ = leads.recv();
        let token = loop {
            match self.acquire() {
                Some(token) => break token,
                // Nothing more comes here: it waits.
                None => drop(leads.recv_timeout(TTL / 4)),
            }
        };
        self.fence(token);
        self.write(token, "of the leader that is");
        let _ = go_on.send(());
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a program of its own, in no simulation"
)]
fn now() -> Instant {
    Instant::now()
}

/// Runs the program and returns its history.
#[expect(
    clippy::disallowed_methods,
    reason = "a program of its own, in no simulation"
)]
pub fn record() -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let recording = Recording::new(Vec::new(), &Header::titled("late-write"))?;
    let subscriber = tracing_subscriber::registry().with(recording.layer());
    // A program would install it for good: `tracing::subscriber::set_global_default`.
    let dispatch = tracing::Dispatch::new(subscriber);

    let start = now();
    let last = Mutex::new(Granted {
        token: 0,
        until: start,
    });
    let store = Store { start, last };
    let storage = Storage(Mutex::new(String::new()));
    let client = |name| Client {
        name,
        store: &store,
        storage: &storage,
    };
    let (leads, is_led) = channel();
    let (go_on, may_go_on) = channel();
    let traced = |work: &dyn Fn()| tracing::dispatcher::with_default(&dispatch, work);
    std::thread::scope(|threads| {
        let (a, b) = (client("a"), client("b"));
        threads.spawn(move || traced(&|| a.leads_and_is_held_up(&leads, &may_go_on)));
        threads.spawn(move || traced(&|| b.takes_over(&is_led, &go_on)));
    });
    Ok(recording.finish()?)
}

/// What the checks say of a history.
pub fn judge(history: &[u8]) -> Result<Verdicts, Box<dyn std::error::Error>> {
    let (header, events) = Reader::new(history, "what was recorded")?;
    let mut judge = Judge::new(&header);
    for event in events {
        judge.see(&event?);
    }
    Ok(judge.finish())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let history = record()?;
    print!("{}", String::from_utf8_lossy(&history));
    for (check, verdict) in judge(&history)?.0 {
        match verdict {
            Verdict::Valid => println!("{check}: valid"),
            Verdict::Violated(evidence) => println!("{check}: VIOLATED: {}", evidence.sentence),
            Verdict::NotClaimed(why) => println!("{check}: not claimed: {why}"),
            Verdict::Unknown(why) => println!("{check}: unknown: {why}"),
        }
    }
    Ok(())
}
