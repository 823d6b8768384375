//! `RUST_LOG=deposed=debug`: what happens, as it happens, as one story on standard
//! error: true time, who, what.
//!
//! Events that carry the fields `time` (ns) and `process` are told under those.
//! Otherwise time is the simulation's, and who is the node whose span is entered; what
//! happens outside of all nodes, between two steps, is the nemesis's doing and has
//! the time of the last step that told anything.

use std::{cell::Cell, fmt, fmt::Write as _, io::Write as _};

use deposed_checkers::history::{NEMESIS, Nanos};
use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
    span,
};
use tracing_subscriber::{
    EnvFilter, Layer, layer::Context, layer::SubscriberExt, registry::LookupSpan,
    util::SubscriberInitExt,
};

use crate::report::words;

/// Tells the story if `RUST_LOG` asks for one.
pub(super) fn install() {
    if std::env::var_os(EnvFilter::DEFAULT_ENV).is_none() {
        return;
    }
    let installed = EnvFilter::try_from_default_env()
        .map_err(|error| error.to_string())
        .and_then(|filter| {
            let story = Story { tell: to_stderr };
            let registry = tracing_subscriber::registry().with(filter).with(story);
            registry.try_init().map_err(|error| error.to_string())
        });
    if let Err(error) = installed {
        eprintln!("deposed: RUST_LOG is left out of account: {error}");
    }
}

fn to_stderr(line: &str) {
    // A story that nobody can hear is not worth a failure.
    let _ = std::io::stderr().lock().write_all(line.as_bytes());
}

/// Tells each event as one line.
struct Story<T> {
    tell: T,
}

/// The name of the node that a span is about.
struct NodeName(String);

impl<S, T> Layer<S> for Story<T>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    T: Fn(&str) + 'static,
{
    fn on_new_span(&self, span: &span::Attributes<'_>, id: &span::Id, context: Context<'_, S>) {
        if span.metadata().name() != "node" {
            return;
        }
        let mut said = Said::default();
        span.record(&mut said);
        if let (Some(name), Some(span)) = (said.name, context.span(id)) {
            span.extensions_mut().insert(NodeName(name));
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut said = Said::default();
        event.record(&mut said);
        let time = words::time(said.time.unwrap_or_else(sim_time));
        let node = context.event_scope(event).and_then(|mut spans| {
            spans.find_map(|span| span.extensions().get().map(|NodeName(name)| name.clone()))
        });
        let who = said.process.or(node).unwrap_or_else(|| NEMESIS.to_owned());
        let level = match *event.metadata().level() {
            Level::ERROR => "error: ",
            Level::WARN => "warning: ",
            _ => "",
        };
        let (what, more) = (said.message, said.more);
        (self.tell)(&format!("{time:>9} {who:<8} {level}{what}{more}\n"));
    }
}

/// The fields of an event or a span.
#[derive(Default)]
struct Said {
    message: String,
    name: Option<String>,
    time: Option<Nanos>,
    process: Option<String>,
    more: String,
}

impl Visit for Said {
    fn record_u64(&mut self, field: &Field, value: u64) {
        match field.name() {
            "time" => self.time = Some(value),
            _ => self.record_debug(field, &value),
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            "name" => self.name = Some(format!("{value:?}")),
            "process" => self.process = Some(format!("{value:?}")),
            // Writing to a string cannot fail.
            name => drop(write!(self.more, " {name}={value:?}")),
        }
    }
}

/// True time on this thread's simulation.
fn sim_time() -> Nanos {
    thread_local! {
        static LAST: Cell<Nanos> = const { Cell::new(0) };
    }
    // Outside of a node's runtime the simulation would read the machine's clock.
    let inside = tokio::runtime::Handle::try_current().ok();
    let elapsed = inside.and_then(|_| turmoil::sim_elapsed());
    let now = elapsed.and_then(|elapsed| Nanos::try_from(elapsed.as_nanos()).ok());
    if let Some(now) = now {
        LAST.set(now);
    }
    LAST.get()
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[test]
    fn each_event_is_a_line_with_its_time_and_who_it_is_about() {
        let told = Arc::new(Mutex::new(String::new()));
        let into = told.clone();
        let tell = move |line: &str| into.lock().expect("nobody panics").push_str(line);
        let subscriber = tracing_subscriber::registry().with(Story { tell });
        tracing::subscriber::with_default(subscriber, || {
            let span = tracing::info_span!("node", name = "a");
            span.in_scope(|| tracing::debug!("acquire"));
            span.in_scope(|| tracing::warn!(peer = %"store", "unreachable"));
            tracing::debug!(time = 12_980_000_000_u64, process = %"b", "acquire token 7");
            tracing::debug!("isolate a");
        });
        let expected = "   0.000s a        acquire
   0.000s a        warning: unreachable peer=store
  12.980s b        acquire token 7
   0.000s nemesis  isolate a
";
        assert_eq!(*told.lock().expect("nobody panics"), expected);
    }
}
