//! Spans and events of the target, as calls and observations.

use std::io::Write;
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::{Event, Metadata, Subscriber, span};
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

use serde_json::{Map, Value};

use super::lines;
use super::log::Log;
use super::{TARGET, locked};

/// The layer of a [`Recording`](super::Recording).
pub struct HistoryLayer<W: Write> {
    log: Arc<Mutex<Log<W>>>,
}

impl<W: Write> HistoryLayer<W> {
    pub(super) fn new(log: Arc<Mutex<Log<W>>>) -> Self {
        Self { log }
    }
}

impl<S, W> Layer<S> for HistoryLayer<W>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: Write + Send + 'static,
{
    fn on_new_span(&self, attributes: &span::Attributes<'_>, id: &span::Id, _: Context<'_, S>) {
        let metadata = attributes.metadata();
        if metadata.target() != TARGET {
            return;
        }
        // Outside the lock: a field's Debug is the caller's.
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let invoke = match metadata.fields().field(lines::OUTCOME) {
            Some(_) => lines::invoke(metadata.name(), fields.0),
            None => Err(lines::no_outcome(metadata.name())),
        };
        locked(&self.log).invoke(id.into_u64(), invoke);
    }

    fn on_record(&self, id: &span::Id, values: &span::Record<'_>, context: Context<'_, S>) {
        if context.metadata(id).is_some_and(is_ours) {
            let mut fields = Fields::default();
            values.record(&mut fields);
            locked(&self.log).answer(id.into_u64(), fields.0);
        }
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if is_ours(event.metadata()) {
            let mut fields = Fields::default();
            event.record(&mut fields);
            let observation = lines::observation(event.metadata().name(), fields.0);
            locked(&self.log).observe(observation);
        }
    }

    fn on_close(&self, id: span::Id, context: Context<'_, S>) {
        if context.metadata(&id).is_some_and(is_ours) {
            locked(&self.log).close(id.into_u64());
        }
    }
}

fn is_ours(metadata: &Metadata<'_>) -> bool {
    metadata.target() == TARGET
}

/// Fields as JSON. A message is for people, and no part of a history.
#[derive(Default)]
struct Fields(Map<String, Value>);

impl Fields {
    fn put(&mut self, field: &Field, value: Value) {
        if field.name() != "message" {
            let name = field.name();
            // `r#try = 1`
            let name = name.strip_prefix("r#").unwrap_or(name);
            self.0.insert(name.to_owned(), value);
        }
    }
}

impl Visit for Fields {
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        // JSON has no NaN.
        let number = serde_json::Number::from_f64(value);
        self.put(
            field,
            number.map_or_else(|| value.to_string().into(), Value::Number),
        );
    }

    fn record_u128(&mut self, field: &Field, value: u128) {
        // `Duration::as_nanos` is one.
        match u64::try_from(value) {
            Ok(value) => self.record_u64(field, value),
            Err(_) => self.put(field, value.to_string().into()),
        }
    }

    fn record_i128(&mut self, field: &Field, value: i128) {
        match i64::try_from(value) {
            Ok(value) => self.record_i64(field, value),
            Err(_) => self.put(field, value.to_string().into()),
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.put(field, format!("{value:?}").into());
    }
}
