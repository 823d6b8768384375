//! A small world, for stateright.

use std::{cell::RefCell, fmt::Debug, hash::Hash, marker::PhantomData, sync::OnceLock};

use deposed::prove::{Catalogue, Nodes, Rules, Scope, State, View};
use stateright::{Checker, Model, Property};

/// The nodes that were met. A process searches once, and stateright's threads are its own.
static CATALOGUE: OnceLock<Catalogue> = OnceLock::new();

thread_local! {
    static VIEW: RefCell<View<'static>> =
        RefCell::new(View::new(CATALOGUE.get().expect("a search has begun")));
}

/// What a state of the search is held as.
trait Held: Clone + Debug + PartialEq + Hash + Send + Sync + 'static {
    fn of(state: State, view: &mut View<'_>) -> Self;
    fn state(&self, view: &mut View<'_>) -> State;
}

/// By the numbers of its nodes, as `deposed prove` holds it.
impl Held for State {
    fn of(state: State, _: &mut View<'_>) -> Self {
        state
    }

    fn state(&self, _: &mut View<'_>) -> State {
        *self
    }
}

/// By its nodes.
impl Held for Nodes {
    fn of(state: State, view: &mut View<'_>) -> Self {
        view.nodes(&state)
    }

    fn state(&self, view: &mut View<'_>) -> State {
        view.state_of(self)
    }
}

/// A state, and whether anything is wrong in it.
#[derive(Clone, Debug, PartialEq, Hash)]
struct Seen<H> {
    held: H,
    broken: bool,
}

struct World<H>(PhantomData<fn() -> H>);

impl<H: Held> Model for World<H> {
    type State = Seen<H>;
    /// Where it leads: stateright need not take a step again to know.
    type Action = Seen<H>;

    fn init_states(&self) -> Vec<Seen<H>> {
        let start = CATALOGUE.get().expect("a search has begun").start();
        let held = VIEW.with_borrow_mut(|view| H::of(start, view));
        vec![Seen {
            held,
            broken: false,
        }]
    }

    fn actions(&self, seen: &Seen<H>, actions: &mut Vec<Seen<H>>) {
        VIEW.with_borrow_mut(|view| {
            let state = seen.held.state(view);
            let mut nexts = Vec::new();
            view.next(&state, &mut |next| {
                nexts.push((next.to, next.broken.is_some()))
            });
            for (to, broken) in nexts {
                let held = H::of(to, view);
                actions.push(Seen { held, broken });
            }
        });
    }

    fn next_state(&self, _: &Seen<H>, action: Seen<H>) -> Option<Seen<H>> {
        Some(action)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("nothing is wrong", |_, seen: &Seen<H>| {
            !seen.broken
        })]
    }
}

/// How many states and steps stateright finds.
fn searched<H: Held>(scope: Scope, jobs: usize) -> (u64, u64) {
    let catalogue = Catalogue::new(scope, Rules::ALL);
    assert!(CATALOGUE.set(catalogue).is_ok(), "a process searches once");
    let checker = World::<H>(PhantomData)
        .checker()
        .threads(jobs)
        .spawn_bfs()
        .join();
    assert!(checker.is_done());
    checker.assert_properties();
    // It counts the start as a step.
    (
        checker.unique_state_count() as u64,
        checker.state_count() as u64 - 1,
    )
}

/// With the states of `deposed prove`.
pub fn compact(scope: Scope, jobs: usize) -> (u64, u64) {
    searched::<State>(scope, jobs)
}

/// With states that hold the nodes themselves, as a model would that is written for it.
pub fn plain(scope: Scope, jobs: usize) -> (u64, u64) {
    searched::<Nodes>(scope, jobs)
}
