//! The way to what is wrong, told in actions of one world whose clients keep their names.
//!
//! The search knows which step of each representative it took. The same way is walked anew
//! in a world that renames nothing, by the steps that lead to states of the same classes.

use super::{
    action::Action,
    catalogue::{Catalogue, View},
    property::Broken,
    reduce::Rules,
    scope::Scope,
    state::State,
};

/// What happened, from the start on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Story {
    /// In order.
    pub actions: Vec<Action>,
}

/// The story of these steps, the last of which breaks something.
///
/// # Panics
/// If no world does the like: then a rule that reduces the search is wrong.
pub(super) fn story(scope: &Scope, rules: Rules, steps: &[u16], broken: Broken) -> Story {
    let reduced = Catalogue::new(scope.clone(), rules);
    // Every number is what the cores say, and every client keeps its name. What a search
    // covers by another step or state is told as that.
    let told = Rules {
        late_loss: rules.late_loss,
        dead_answers: rules.dead_answers,
        waits: rules.waits,
        over: rules.over,
        acts: rules.acts,
        ..Rules::NONE
    };
    let told = Catalogue::new(scope.clone(), told);
    let (mut reducing, mut telling) = (View::new(&reduced), View::new(&told));
    let (mut class, mut state) = (reduced.start(), told.start());
    let mut actions = Vec::with_capacity(steps.len());
    for (nth, step) in steps.iter().enumerate() {
        let mut taken = None;
        let mut at = 0;
        reducing.next(&class, &mut |next| {
            if at == *step {
                taken = Some(next.to);
            }
            at += 1;
        });
        let wanted = taken.expect("the search took this step");
        let last = nth + 1 == steps.len();
        let mut ways = Vec::new();
        telling.next(&state, &mut |next| ways.push(next));
        let same = |next: &super::state::Next| {
            let outcome = if last { Some(broken) } else { None };
            next.broken == outcome && reducing.class_of(&mut telling, &next.to) == wanted
        };
        let next = ways.into_iter().find(same);
        let next = next.unwrap_or_else(|| {
            panic!("a rule of the search is wrong: nothing does step {nth} after {actions:?}")
        });
        actions.push(next.action);
        (class, state) = (wanted, next.to);
    }
    Story { actions }
}

impl View<'_> {
    /// The representative, in this catalogue, of a state of another.
    pub(super) fn class_of(&mut self, other: &mut View<'_>, state: &State) -> State {
        let mut same = *state;
        same.store = self.number_store(other.store(state.store).0.as_ref().clone());
        same.storage = self.number_storage(other.storage(state.storage).0.as_ref().clone());
        for client in 0..self.all.scope.clients {
            let node = other.candidate(state.clients[client]).0.as_ref().clone();
            same.clients[client] = self.number_candidate(node);
        }
        self.representative(same)
    }
}
