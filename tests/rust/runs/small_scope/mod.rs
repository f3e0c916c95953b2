//! All that may happen to small trees of runs, in every order.

mod driver;
pub(crate) mod scope;
mod world;

use callslip::run::replay;
use scope::Scope;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use world::{Ground, Step, World};

/// What was seen of a scope.
#[derive(Default, Clone, Copy)]
pub(crate) struct Figures {
    pub(crate) states: usize,
    pub(crate) transitions: usize,
    /// States in which all is over.
    pub(crate) ends: usize,
    /// Steps of the longest path.
    pub(crate) longest: usize,
    /// Different logs, each of which was replayed.
    pub(crate) logs: usize,
}

impl fmt::Display for Figures {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { states, transitions, ends, longest, logs } = self;
        write!(
            formatter,
            "{states} states, {transitions} transitions, {ends} ends, {longest} steps at most, {logs} logs replayed"
        )
    }
}

struct Explorer {
    ground: Arc<Ground>,
    /// Every state seen, and whether the path at hand leads through it.
    seen: HashMap<u64, bool>,
    replayed: HashSet<u64>,
    figures: Figures,
}

/// Goes through every state that the scope allows.
pub(crate) fn explore(scope: Scope) -> Figures {
    let ground = Ground::new(scope);
    let mut explorer = Explorer { ground, seen: HashMap::new(), replayed: HashSet::new(), figures: Figures::default() };
    let world = World::new(&explorer.ground);
    explorer.visit(world);
    Figures { states: explorer.seen.len(), logs: explorer.replayed.len(), ..explorer.figures }
}

impl Explorer {
    fn visit(&mut self, world: World) {
        let id = world.identity();
        if let Some(on_path) = self.seen.get(&id) {
            world.check(!on_path, &|| "this goes on for ever".to_owned());
            return;
        }
        self.seen.insert(id, true);
        self.figures.longest = self.figures.longest.max(world.path.len());
        self.replay(&world);
        let (due, disturbing) = world.steps();
        if world.is_over() {
            self.figures.ends += 1;
            world.check_end();
            world.check(due.is_empty(), &|| format!("all is over, and yet there is more to do: {due:?}"));
        } else {
            world.check(!due.is_empty(), &|| "everybody waits for something that nobody will do".to_owned());
        }
        let steps: Vec<Step> = due.into_iter().chain(disturbing).collect();
        let (path, mut here) = (world.path.clone(), Some(world));
        for (position, step) in steps.iter().enumerate() {
            let last = position + 1 == steps.len();
            let world = if last { here.take() } else { None };
            // Machines are not copied: what led here happens once more.
            let mut world = world.unwrap_or_else(|| World::again(&self.ground, &path));
            world.apply(step);
            self.figures.transitions += 1;
            self.visit(world);
        }
        self.seen.insert(id, false);
    }

    /// Every log, cut where this state leaves it, comes out of its own replies and outcomes once more.
    fn replay(&mut self, world: &World) {
        for log in world.logs() {
            let mut hasher = DefaultHasher::new();
            for record in log.iter().skip(1) {
                serde_json::to_string(record).unwrap().hash(&mut hasher);
            }
            if self.replayed.insert(hasher.finish()) {
                let replayed = replay(log);
                world.check(replayed.is_ok(), &|| format!("{:?}", replayed.as_ref().unwrap_err()));
            }
        }
    }
}
