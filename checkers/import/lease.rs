//! A foreign history as events of a lease: what `--model lease` judges.
//!
//! Each operation is named by its `f`, as in this crate's own format: `acquire`, `renew`,
//! `release`, `fence`, `write`, `read`, `delete`; an `info` that is no call's end may be a
//! `lead` or a `follow`. What they carry stands in a field of the entry, or in a map that is
//! its value:
//!
//! | what | where, the first that is there |
//! | --- | --- |
//! | token | `token`; in a map `:token` or `:fence`; the value itself, where it is a number, of an acquire's `ok` and of fences, renewals and releases |
//! | lease | in a map `:lease`; `key`, of all but reads, writes and deletes; in a map `:lock` or `:key`; the one that the process acquired; `lease` |
//! | key of data | `key`; in a map `:key`; the first of a value `[key value]`, where every read has one; `value` |
//! | data | in a map that has it `:value`; the second of `[key value]`; the value itself |
//! | error | `error`, a word, or a map with `:kind`, `:presented` and `:seen` |
//!
//! The history has no header: no lease timing, no lock-delay, no clocks' rates, so that
//! checks which need these claim nothing, and say which it was. Where it has no tokens, those
//! that need tokens do the same. Lines stand in the order in which things happened: a
//! time before that of the line before is an error, and lines without one follow the last.
//! Who knows the lease's timing gives it in the [`header`], and must have a true time on
//! every line then: [`Events::timed`].

use std::collections::BTreeMap;

use super::keys::{Keyed, Unfit};
use super::{Entry, Problem, ReadError, Value};
use crate::history::{
    Acquire, Answer, Body, Delete, Event, F, Fence, Follow, Header, Kind, Lead, NEMESIS, Name,
    Nanos, Observation, Op, Read, Release, Renew, Write,
};

mod fields;
mod names;

use fields::{datum, failure, lease, plain, token, whole};
use names::Leases;

/// What a foreign history says of itself: nothing. Who knows the lease's timing sets it, and
/// reads [timed](Events::timed) events.
pub fn header() -> Header {
    Header::titled("")
}

/// An iterator over a foreign history's events, numbered from 0 without gaps. After an error
/// it ends.
///
/// ```
/// use deposed_checkers::import::{Entries, Format, lease};
/// use deposed_checkers::judge::Judge;
/// use deposed_checkers::verdict::{Check, Verdict};
///
/// let history = "\
/// process,type,f,token,value
/// a,invoke,acquire,,
/// a,ok,acquire,7,
/// b,invoke,acquire,,
/// b,ok,acquire,8,
/// b,invoke,fence,8,
/// b,ok,fence,8,
/// a,invoke,write,7,late
/// a,ok,write,7,late
/// ";
/// let entries = Entries::new(Format::Csv, history.as_bytes(), "a.csv");
/// let mut judge = Judge::new(&lease::header());
/// for event in lease::Events::new(entries, "a.csv") {
///     judge.see(&event?);
/// }
/// let verdicts = judge.finish();
/// let Some(Verdict::Violated(evidence)) = verdicts.of(Check::StorageSafety) else { panic!() };
/// assert_eq!((evidence.culprit, &*evidence.expected), (7, "refused, storage had seen 8"));
/// # Ok::<(), deposed_checkers::import::ReadError>(())
/// ```
pub struct Events<I: Iterator> {
    entries: Keyed<I>,
    file: String,
    next_index: u64,
    now: Option<Nanos>,
    timed: bool,
    requests: u64,
    leases: Leases,
    /// By process: what it does.
    open: BTreeMap<Name, F>,
    /// By process: the request by which it holds a lease.
    holding: BTreeMap<(Name, Name), u64>,
    /// By process: the lease that it asks for.
    asking: BTreeMap<Name, (Name, u64)>,
    ended: bool,
}

impl<I: Iterator<Item = Result<Entry, ReadError>>> Events<I> {
    /// Makes events of entries. `file` is the name that errors carry.
    pub fn new(entries: I, file: impl Into<String>) -> Self {
        Events {
            entries: Keyed::of_leases(entries),
            file: file.into(),
            next_index: 0,
            now: None,
            timed: false,
            requests: 0,
            leases: Leases::default(),
            open: BTreeMap::new(),
            holding: BTreeMap::new(),
            asking: BTreeMap::new(),
            ended: false,
        }
    }

    /// The same, whose times are judged: a line without one, or with one that is earlier than
    /// the line's before, is an error.
    #[must_use]
    pub fn timed(self) -> Self {
        Events {
            timed: true,
            ..self
        }
    }

    fn event(&mut self, entry: Entry) -> Result<Event, ReadError> {
        let place = entry.place;
        self.made(entry).map_err(|problem| ReadError {
            file: self.file.clone(),
            place: Some(place),
            problem,
        })
    }

    fn made(&mut self, entry: Entry) -> Result<Event, Problem> {
        if self.timed {
            in_time(self.now, entry.time)?;
        }
        let body = self.body(&entry)?;
        let time = match (self.now, entry.time) {
            (None, time) => time.unwrap_or(0),
            (Some(now), Some(time)) if time < now => {
                let what = format!(
                    "{time} after {now}: a lease's lines are in the order of their times; sort \
                     them, or leave the times out"
                );
                return Err(Problem::field("time", what));
            }
            (Some(_), Some(time)) => time,
            (Some(now), None) => now.saturating_add(1),
        };
        self.now = Some(time);
        let index = self.next_index;
        self.next_index += 1;
        Ok(Event {
            index,
            time,
            process: entry.process,
            kind: entry.kind,
            call: None,
            body,
            error: entry.error.as_ref().map(failure).transpose()?,
        })
    }

    fn body(&mut self, entry: &Entry) -> Result<Body, Problem> {
        if entry.process == NEMESIS {
            return Ok(Body::Nemesis(entry.f.clone(), plain(&entry.value)));
        }
        let f = F::of_name(&entry.f);
        match (entry.kind, f) {
            (Kind::Invoke, Some(f)) => {
                let op = self.op(f, entry)?;
                self.open.insert(entry.process.clone(), f);
                Ok(Body::Invoke(op))
            }
            (Kind::Invoke, None) => {
                let known = [
                    "acquire", "renew", "release", "fence", "write", "read", "delete",
                ];
                let what = format!(
                    "'{}' is no operation of a lease, which are {}; name the model that it is of",
                    entry.f,
                    known.join(", ")
                );
                Err(Problem::field("f", what))
            }
            (_, Some(f)) if self.open.get(&entry.process) == Some(&f) => {
                self.open.remove(&entry.process);
                self.answer(f, entry)
                    .map(|answer| Body::Complete(f, answer))
            }
            _ => self.observation(entry),
        }
    }

    fn op(&mut self, f: F, entry: &Entry) -> Result<Op, Problem> {
        let token = token(entry, f)?;
        let holder = entry.process.clone();
        let lease = match (lease(entry), f) {
            (Some(lease), F::Acquire) => {
                self.leases.asks(&holder, &lease);
                lease
            }
            (Some(lease), _) => lease,
            (None, _) => self.leases.of(entry)?,
        };
        let (key, value) = datum(entry);
        Ok(match f {
            F::Acquire => {
                // Whoever holds it and asks again, repeats its request.
                let held = self.holding.get(&(holder.clone(), lease.clone()));
                let request = held.copied().unwrap_or_else(|| {
                    self.requests += 1;
                    self.requests
                });
                self.asking.insert(holder.clone(), (lease.clone(), request));
                Op::Acquire(Acquire {
                    lease,
                    holder,
                    request,
                    ttl: 0,
                })
            }
            F::Renew => {
                self.requests += 1;
                Op::Renew(Renew {
                    lease,
                    holder,
                    token,
                    attempt: self.requests,
                    ttl: 0,
                })
            }
            F::Release => {
                self.holding.remove(&(holder.clone(), lease.clone()));
                Op::Release(Release {
                    lease,
                    holder,
                    token,
                })
            }
            F::Fence => {
                let missing = "missing; a fence tells storage a token";
                let token = token.ok_or_else(|| Problem::field("token", missing))?;
                Op::Fence(Fence { lease, token })
            }
            F::Write => Op::Write(Write {
                lease,
                token,
                seq: None,
                key,
                value: plain(value),
            }),
            F::Delete => Op::Delete(Delete {
                lease,
                token,
                seq: None,
                key,
            }),
            F::Read => Op::Read(Read { lease, token, key }),
        })
    }

    fn answer(&mut self, f: F, entry: &Entry) -> Result<Answer, Problem> {
        let asked = match f {
            F::Acquire => self.asking.remove(&entry.process),
            _ => None,
        };
        if entry.kind != Kind::Ok {
            return Ok(Answer::None);
        }
        Ok(match f {
            F::Acquire => {
                let token = token(entry, f)?;
                if let Some((lease, request)) = asked {
                    self.leases.granted(&entry.process, &lease, token);
                    self.holding.insert((entry.process.clone(), lease), request);
                }
                token.map_or(Answer::None, Answer::Token)
            }
            F::Read => {
                let value = match &entry.value {
                    Value::Map(fields) if fields.contains_key("value") => &fields["value"],
                    value => value,
                };
                Answer::Value(plain(value))
            }
            _ => Answer::None,
        })
    }

    /// What is no end of a call.
    fn observation(&self, entry: &Entry) -> Result<Body, Problem> {
        let holder = entry.process.clone();
        let lease = || match lease(entry) {
            Some(lease) => Ok(lease),
            None => self.leases.of(entry),
        };
        let token = || token(entry, F::Fence);
        let field = |name| match &entry.value {
            Value::Map(fields) => fields.get(name),
            _ => None,
        };
        let nanos = |name: &'static str| match field(name) {
            None | Some(Value::Nil) => Ok(None),
            Some(value) => match whole(value) {
                Some(time) => Ok(Some(time)),
                None => {
                    let what = format!("{value} is no time: they are whole nanoseconds");
                    Err(Problem::field(name, what))
                }
            },
        };
        Ok(match &*entry.f {
            "lead" => Body::Observed(Observation::Lead(Lead {
                lease: lease()?,
                holder,
                token: token()?,
                until: nanos("until")?,
                sent: nanos("sent")?,
            })),
            "follow" => Body::Observed(Observation::Follow(Follow {
                lease: lease()?,
                holder,
                token: token()?,
            })),
            _ => Body::Foreign(entry.f.clone(), plain(&entry.value)),
        })
    }
}

impl<I: Iterator<Item = Result<Entry, ReadError>>> Iterator for Events<I> {
    type Item = Result<Event, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let event = match self.entries.next()? {
            Ok(entry) => self.event(entry),
            Err(Unfit::Read(error)) => Err(error),
            Err(Unfit::Key(place, why)) => Err(ReadError {
                file: self.file.clone(),
                place: Some(place),
                problem: Problem::field("key", why),
            }),
        };
        self.ended = event.is_err();
        Some(event)
    }
}

fn in_time(now: Option<Nanos>, time: Option<Nanos>) -> Result<(), Problem> {
    let Some(time) = time else {
        let what = "missing; where the lease's timing is given every line needs its time, in \
                    nanoseconds of one clock";
        return Err(Problem::field("time", what));
    };
    match now.filter(|now| time < *now) {
        None => Ok(()),
        Some(now) => {
            let what = format!(
                "{time} is earlier than {now} on a line before; where the lease's timing is \
                 given, sort the lines by their time, on one clock"
            );
            Err(Problem::field("time", what))
        }
    }
}
