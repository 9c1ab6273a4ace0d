use jiff::Timestamp;
use limiter_common::{
    address::Address,
    key::BucketKey,
    limit::{Cost, LimitId},
    strategy::{Parameters, Strategy},
    unit::Unit,
};
use limiter_datapath::state::{
    ClockReading, Debts, HashDebt, SavedBan, SavedSieve, SavedSources, SetDebts, StoredDebts,
};
use limiter_policy::policy::{Names, TooManyUnits, Units};
use tempfile::TempDir;

use super::*;

const SECOND: u64 = 1_000_000_000;

/// When the file was first written, by the wall clock.
const BEGUN: i64 = 1_000_000;

/// The state at a time, in seconds since the file was first written.
#[derive(Default)]
struct Scene {
    second: u64,
    /// How many seconds the wall clock was set forward since.
    set_forward: i64,
    /// The number of changes to bans.
    changes: u64,
    /// The seconds until the only bucket is full.
    owed: u64,
    known: SavedSources,
}

impl Scene {
    fn saved_at(&self) -> Timestamp {
        let wall = BEGUN + i64::try_from(self.second).unwrap() + self.set_forward;
        Timestamp::from_second(wall).unwrap()
    }

    fn captured(&self, file: Option<&WriteSummary>) -> CaptureOutcome {
        let saved_at = self.saved_at();
        let at = ClockReading::new((5_000 + self.second) * SECOND, saved_at);
        let sets = vec![debts(self.owed)];
        let now = WriteSummary::new(&sets, self.changes, at);
        if file.is_some_and(|file| file.suffices(&now)) {
            return CaptureOutcome::Suffices(saved_at);
        }
        let snapshot = Snapshot {
            saved_at,
            names: Names::default(),
            sets,
            bans: Vec::<SavedBan>::new(),
            hits: Vec::new(),
            sieves: Vec::<SavedSieve>::new(),
            known: self.known.clone(),
        };
        CaptureOutcome::Whole(snapshot, now)
    }
}

/// Returns the debt of one bucket, which lasts the given seconds.
fn debts(seconds: u64) -> SetDebts {
    let parameters = Parameters::new(Strategy::Gcra, 1_000, 1, SECOND).unwrap();
    let unit = Unit::new(&parameters, Cost::Packets);
    let (units, numbers) = Units::default().intern(&[unit]).unwrap();
    let debt = HashDebt {
        key: BucketKey::of_source(LimitId(1), Address::v4([192, 0, 2, 1]), 32),
        unit: numbers[0],
        owed: seconds * SECOND,
    };
    let owing = (seconds > 0).then_some(debt);
    SetDebts {
        interface: None,
        debts: Debts {
            units,
            stored: StoredDebts::Hash(owing.into_iter().collect()),
        },
    }
}

/// Returns a saver that has written its file at second 0.
fn saver() -> (TempDir, StateSaver) {
    let directory = tempfile::tempdir().unwrap();
    let saver = StateSaver::new(directory.path().join("state"));
    assert_eq!(renewed(&saver, &Scene::default()), 0);
    (directory, saver)
}

/// Renews the file; returns the second at which it was last written, by the wall clock.
#[track_caller]
fn renewed(saver: &StateSaver, scene: &Scene) -> i64 {
    saver.renew(|file| Ok(scene.captured(file)));
    let status = saver.status();
    assert_eq!(status.error, None);
    assert_eq!(status.saved_at, Some(scene.saved_at()));
    let written = StateFile::new(status.file).load().unwrap().unwrap();
    written.saved_at.as_second() - BEGUN
}

#[test]
fn what_is_not_urgent_waits_ten_minutes() {
    let (_directory, saver) = saver();
    let known = SavedSources {
        ipv6_prefix: 48,
        ..SavedSources::default()
    };
    let at = |second| Scene {
        second,
        known: known.clone(),
        ..Scene::default()
    };
    assert_eq!(renewed(&saver, &at(60)), 0);
    assert_eq!(renewed(&saver, &at(540)), 0);
    assert_eq!(renewed(&saver, &at(600)), 600);
    assert_eq!(renewed(&saver, &at(660)), 600);
    // An operator's change does not wait, nor does the daemon's end.
    saver.hurry();
    assert_eq!(renewed(&saver, &at(720)), 720);
    assert_eq!(renewed(&saver, &at(780)), 720);
    saver.save(|file| Ok(at(790).captured(file)));
    assert_eq!(renewed(&saver, &at(840)), 790);
}

#[test]
fn bans_are_urgent() {
    let (_directory, saver) = saver();
    let at = |second, changes| Scene {
        second,
        changes,
        ..Scene::default()
    };
    assert_eq!(renewed(&saver, &at(60, 0)), 0);
    assert_eq!(renewed(&saver, &at(120, 1)), 120);
    assert_eq!(renewed(&saver, &at(180, 3)), 180);
    assert_eq!(renewed(&saver, &at(240, 3)), 180);
}

#[test]
fn what_is_owed_for_more_than_a_minute_is_urgent() {
    let (_directory, saver) = saver();
    let at = |second, owed| Scene {
        second,
        owed,
        ..Scene::default()
    };
    assert_eq!(renewed(&saver, &at(60, 60)), 0);
    assert_eq!(renewed(&saver, &at(120, 61)), 120);
    // The debt is another one by now.
    assert_eq!(renewed(&saver, &at(180, 61)), 180);
    // The debt is paid: a restart must not bring it back.
    assert_eq!(renewed(&saver, &at(240, 0)), 240);
    assert_eq!(renewed(&saver, &at(300, 0)), 240);
}

#[test]
fn a_clock_that_was_set_is_urgent() {
    let (_directory, saver) = saver();
    let at = |second, set_forward| Scene {
        second,
        set_forward,
        ..Scene::default()
    };
    assert_eq!(renewed(&saver, &at(60, 1_000_000)), 1_000_060);
    assert_eq!(renewed(&saver, &at(120, 1_000_000)), 1_000_060);
    assert_eq!(renewed(&saver, &at(180, -3_600)), -3_420);
}

#[test]
fn a_file_that_is_gone_is_written_again() {
    let (directory, saver) = saver();
    let at = |second| Scene {
        second,
        ..Scene::default()
    };
    fs::remove_file(directory.path().join("state")).unwrap();
    assert_eq!(renewed(&saver, &at(60)), 60);

    fs::remove_dir_all(directory.path()).unwrap();
    saver.renew(|file| Ok(at(120).captured(file)));
    let status = saver.status();
    assert_eq!(status.errors, 1);
    assert!(status.error.is_some());
    fs::create_dir(directory.path()).unwrap();
    assert_eq!(renewed(&saver, &at(180)), 180);
}

/// A state is refused, for example, if its rates do not fit beside the rates of the configuration.
#[test]
fn a_state_that_is_refused_is_kept_beside_the_next_one() {
    let (directory, _) = saver();
    let path = directory.path().join("state");
    let refused = fs::read(&path).unwrap();
    // The next daemon.
    let saver = StateSaver::new(path.clone());
    assert!(saver.load("").is_some());
    saver.refuse(TooManyUnits.into(), "");
    let later = Scene {
        second: 60,
        changes: 1,
        ..Scene::default()
    };
    assert_eq!(renewed(&saver, &later), 60);
    assert_ne!(fs::read(&path).unwrap(), refused);
    let aside = directory.path().join("state.not-restored-1");
    assert_eq!(fs::read(aside).unwrap(), refused);
}
