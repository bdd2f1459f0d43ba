//! Correct programs pass; each seeded fault is found.

use super::*;
use crate::codegen::x86::machine::code::{Arg, Class, Constant, Inst, View};
use crate::codegen::x86::machine::registers::{Home, allocate};
use crate::codegen::x86::machine::{FrameFrom, assemble, coalesce, constants, dead, encode, order};
use crate::vectors::Vectors;
use iced_x86::{Instruction, OpKind, Register};

const BUFFERS: Reg = Reg(1);

/// The offset in the frame, in bytes, of the first slot.
const SPILLS_AT: u64 = 256;

struct Builder {
    program: MachineProgram,
    tier: Tier,
}

impl Builder {
    fn new(tier: Tier) -> Builder {
        let mut program = MachineProgram::default();
        program.classes.extend([Class::General; 2]);
        program.loops.push("steps".into());
        Builder { program, tier }
    }

    fn vector(&mut self) -> Reg {
        self.program.reg(Class::Vector)
    }

    fn arg(&self, reg: Reg) -> Arg {
        match self.program.classes[reg.0 as usize] {
            Class::General => Arg::Reg(reg, View::R64),
            Class::Vector => Arg::Reg(reg, self.tier.view()),
            Class::Mask => Arg::Reg(reg, View::K),
        }
    }

    fn push(&mut self, inst: Inst) {
        self.program.items.push(Item::Inst(inst));
    }

    /// Adds an instruction of registers only.
    fn op(&mut self, opcode: Opcode, regs: &[Reg]) {
        let args: Vec<Arg> = regs.iter().map(|&reg| self.arg(reg)).collect();
        self.push(Inst::new(opcode, &args));
    }

    fn by(&mut self, opcode: Opcode, reg: Reg, number: i64) {
        self.push(Inst::new(opcode, &[self.arg(reg), Arg::Imm(number)]));
    }

    fn load(&mut self, reg: Reg, base: Reg, offset: i32) {
        let opcode = match self.program.classes[reg.0 as usize] {
            Class::General => Opcode::Mov,
            _ if self.tier.is_512() => Opcode::Vmovdqu32,
            _ => Opcode::VmovdquYmm,
        };
        self.push(Inst::new(opcode, &[self.arg(reg), Arg::Mem(base, offset)]));
    }

    fn store(&mut self, base: Reg, offset: i32, reg: Reg) {
        let opcode = if self.tier.is_512() { Opcode::Vmovdqu32Store } else { Opcode::VmovdquYmmStore };
        self.push(Inst::new(opcode, &[Arg::Mem(base, offset), self.arg(reg)]));
    }

    /// Adds the addresses of two buffers and a counter, then a loop around the items that `body` adds.
    fn steps(&mut self, body: impl FnOnce(&mut Builder, Reg, Reg)) {
        let [x, y, counter] = [(); 3].map(|()| self.program.reg(Class::General));
        self.load(x, BUFFERS, 0);
        self.load(y, BUFFERS, 8);
        self.by(Opcode::MovBy64, counter, 100);
        let head = self.program.label();
        self.program.items.extend([Item::Enter(0), Item::Label(head)]);
        body(self, x, y);
        self.by(Opcode::AddBy, x, 64);
        self.by(Opcode::SubBy, counter, 1);
        self.program.items.extend([Item::Jump(Opcode::Jne, head), Item::Leave]);
    }
}

/// A loop with a constant, a maximum that is copied, a copy under a mask, and loads between stores.
fn maxima() -> MachineProgram {
    let mut b = Builder::new(Tier::Avx512);
    let one = b.program.constant(Constant::Splat(1.0f32.to_bits().into(), 4));
    let mask = b.program.constant(Constant::Mask(0xff));
    let [max, some, loaded, sum, next, other, unused] = [(); 7].map(|()| b.vector());
    b.op(Opcode::Zero, &[max; 3]);
    b.op(Opcode::Zero, &[some; 3]);
    b.steps(|b, x, y| {
        b.load(loaded, x, 0);
        b.op(Opcode::Vaddps, &[sum, loaded, one]);
        b.op(Opcode::Vaddps, &[unused, loaded, loaded]);
        b.op(Opcode::Vmaxps, &[next, max, sum]);
        b.program.items.push(Item::Copy { to: max, from: next });
        let args = [some, sum].map(|reg| b.arg(reg));
        b.push(Inst::new(Opcode::Vmovdqu32, &args).masked(mask, false));
        b.store(y, 0, max);
        b.load(other, y, 32);
        b.store(y, 128, other);
        b.store(y, 192, some);
    });
    b.program
}

/// A loop over more vectors than there are registers in AVX2.
fn sums() -> MachineProgram {
    let mut b = Builder::new(Tier::Avx2);
    let sums = [(); 20].map(|()| b.vector());
    let factor = b.program.constant(Constant::Splat(7, 4));
    sums.into_iter().for_each(|sum| b.op(Opcode::Zero, &[sum; 3]));
    b.steps(|b, x, y| {
        let loaded = b.vector();
        b.load(loaded, x, 0);
        for (n, &to) in sums.iter().enumerate() {
            let c = b.arg(to);
            let factor = b.arg(if n % 2 == 0 { factor } else { sums[(n + 5) % 20] });
            b.program.items.push(Item::Fma { to, a: loaded, b: factor, c, double: false });
            let last = b.vector();
            b.op(Opcode::Vsubps, &[last, to, sums[(n + 3) % 20]]);
            b.store(y, 32 * n as i32, last);
        }
    });
    b.program
}

/// The place of an instruction with this opcode, by its number among them.
fn find(program: &MachineProgram, opcode: Opcode, nth: usize) -> usize {
    let is = |item: &Item| matches!(item, Item::Inst(inst) if inst.opcode == opcode);
    let mut found = (0..program.items.len()).filter(|&at| is(&program.items[at]));
    found.nth(nth).expect("the instruction")
}

/// Checks that a change of the program after a pass is found, and that the fault's message has `named`.
fn finds(named: &str, change: impl FnOnce(&mut MachineProgram)) {
    let before = maxima();
    let mut after = before.clone();
    change(&mut after);
    let fault = values::same(&before, &after, &Pool::default(), Tier::Avx512).expect_err(named);
    assert!(fault.contains(named), "{fault}");
}

fn inst(program: &mut MachineProgram, opcode: Opcode, nth: usize) -> &mut Inst {
    let at = find(program, opcode, nth);
    let Item::Inst(inst) = &mut program.items[at] else { panic!("an instruction") };
    inst
}

fn take(program: &mut MachineProgram, which: impl FnOnce(&MachineProgram) -> usize) {
    program.items.remove(which(program));
}

fn swap(program: &mut MachineProgram, which: [(Opcode, usize); 2]) {
    let [a, b] = which.map(|(opcode, nth)| find(program, opcode, nth));
    program.items.swap(a, b);
}

#[test]
fn correct_programs_pass() {
    for (program, bits) in [(maxima(), 512), (sums(), 256), (sums_of_masks(), 512)] {
        assemble(program, Vectors::WIDEST.at_most(bits), BUFFERS, (FrameFrom::Caller, SPILLS_AT)).expect("code");
    }
}

/// A program with more masks than registers, one of which is merged into.
fn sums_of_masks() -> MachineProgram {
    let mut b = Builder::new(Tier::Avx512);
    let masks = [(); 9].map(|()| b.program.reg(Class::Mask));
    let [a, sum] = [(); 2].map(|()| b.vector());
    b.op(Opcode::Zero, &[sum; 3]);
    b.steps(|b, x, y| {
        for (n, &mask) in masks.iter().enumerate() {
            b.load(a, x, 64 * n as i32);
            b.op(Opcode::Vpcmpgtd, &[mask, a, sum]);
        }
        for mask in masks {
            let args = [sum, sum, a].map(|reg| b.arg(reg));
            b.push(Inst::new(Opcode::Vaddps, &args).masked(mask, false));
        }
        b.store(y, 0, sum);
    });
    b.program
}

#[test]
fn faults_of_passes_are_found() {
    finds("store", |p| take(p, |p| find(p, Opcode::Vmaxps, 0)));
    finds("store", |p| swap(p, [(Opcode::Vaddps, 0), (Opcode::Vmovdqu32, 0)]));
    finds("store", |p| swap(p, [(Opcode::Vmovdqu32Store, 0), (Opcode::Vmovdqu32, 2)]));
    finds("store", |p| swap(p, [(Opcode::Vmovdqu32Store, 1), (Opcode::Vmovdqu32Store, 2)]));
    finds("2 stores", |p| take(p, |p| find(p, Opcode::Vmovdqu32Store, 2)));
    finds("the flags", |p| swap(p, [(Opcode::AddBy, 0), (Opcode::SubBy, 0)]));
    finds("the flags", |p| {
        let count = find(p, Opcode::SubBy, 0);
        let Item::Inst(mut compare) = p.items[count] else { panic!("an instruction") };
        compare.opcode = Opcode::CmpBy;
        p.items.insert(count + 1, Item::Inst(compare));
    });
    finds("before item", |p| inst(p, Opcode::SubBy, 0).args[1] = Arg::Imm(2));
    finds("register", |p| take(p, |p| find(p, Opcode::AddBy, 0)));
    // The copy is gone, but the maximum still goes to its old register.
    finds("store", |p| take(p, |p| find(p, Opcode::Vmaxps, 0) + 1));
    finds("store", |p| inst(p, Opcode::Vmaxps, 0).args.swap(1, 2));
    // A merge writes all lanes, or zeros outside the mask.
    finds("store", |p| inst(p, Opcode::Vmovdqu32, 1).mask = None);
    finds("store", |p| inst(p, Opcode::Vmovdqu32, 1).zeroing = true);
    finds("loops are others", |p| take(p, |p| p.items.len() - 1));
}

#[test]
fn what_nothing_reads_may_go() {
    let before = maxima();
    let mut after = before.clone();
    after.items.remove(find(&after, Opcode::Vaddps, 1));
    values::same(&before, &after, &Pool::default(), Tier::Avx512).expect("it is not read");
}

#[test]
fn faults_of_constants_are_found() {
    let before = maxima();
    let finds = |change: fn(&mut MachineProgram, &mut Pool)| {
        let mut after = before.clone();
        let mut pool = constants::place(&mut after, Tier::Avx512, &[BUFFERS]);
        values::same(&before, &after, &pool, Tier::Avx512).expect("the constants");
        change(&mut after, &mut pool);
        values::same(&before, &after, &pool, Tier::Avx512).expect_err("a fault")
    };
    // The value in memory is another one.
    finds(|_, pool| pool.entries[0][0] ^= 1);
    // A load is missing, a load stands behind its loop, and the loop overwrites a register.
    finds(|p, _| take(p, |p| find(p, Opcode::Vpbroadcastd, 0)));
    finds(|p, _| {
        let load = p.items.remove(find(p, Opcode::Vpbroadcastd, 0));
        p.items.push(load);
    });
    finds(|p, _| {
        let Some((to, _)) = p.items[find(p, Opcode::Vpbroadcastd, 0)].def() else { panic!("a load") };
        let at = find(p, Opcode::Vmaxps, 0);
        let (from, _) = p.items[at].def().expect("a result");
        p.items.insert(at + 1, Item::Copy { to, from });
    });
    finds(|p, _| inst(p, Opcode::MovBy32, 0).args[1] = Arg::Imm(0xfe));
}

#[test]
fn constants_are_loaded_again_behind_a_label_or_many_registers() {
    let loads = |label: bool, live: usize| {
        let mut b = Builder::new(Tier::Avx512);
        let mask = b.program.constant(Constant::Mask(0xff));
        let [sum, other] = [(); 2].map(|()| b.vector());
        b.op(Opcode::Zero, &[sum; 3]);
        b.op(Opcode::Zero, &[other; 3]);
        let masks = vec![(); live].into_iter().map(|()| b.program.reg(Class::Mask)).collect::<Vec<_>>();
        let add = |b: &mut Builder, mask| {
            let args = [sum, sum, other].map(|reg| b.arg(reg));
            b.push(Inst::new(Opcode::Vaddps, &args).masked(mask, false));
        };
        add(&mut b, mask);
        masks.iter().for_each(|&mask| b.op(Opcode::Vpcmpgtd, &[mask, sum, other]));
        if label {
            let here = b.program.label();
            b.program.items.push(Item::Label(here));
        }
        masks.into_iter().for_each(|mask| add(&mut b, mask));
        add(&mut b, mask);
        b.store(BUFFERS, 0, sum);
        let before = b.program.clone();
        let pool = constants::place(&mut b.program, Tier::Avx512, &[BUFFERS]);
        values::same(&before, &b.program, &pool, Tier::Avx512).expect("the constants");
        let is_load = |item: &&Item| matches!(item, Item::Inst(inst) if inst.opcode == Opcode::KmovqOf);
        b.program.items.iter().filter(is_load).count()
    };
    assert_eq!([loads(false, 0), loads(false, 5)], [1, 1]);
    assert_eq!([loads(true, 0), loads(false, 6)], [2, 2]);
}

#[test]
fn constants_that_are_loaded_often_take_the_register_of_a_value_that_a_loop_reads() {
    let loads = |writes: bool| {
        let mut b = Builder::new(Tier::Avx512);
        let order = b.program.constant(Constant::Bytes((0..64).collect()));
        let values = [(); 31].map(|()| b.vector());
        values.iter().for_each(|&value| b.load(value, BUFFERS, 64));
        b.steps(|b, x, y| {
            for (n, &value) in values.iter().enumerate() {
                let [loaded, sum] = [(); 2].map(|()| b.vector());
                b.load(loaded, x, 64);
                if n < 4 {
                    b.op(Opcode::Vpermd, &[loaded, order, loaded]);
                }
                b.op(Opcode::Vaddps, &[if writes { value } else { sum }, loaded, value]);
                b.store(y, 0, if writes { value } else { sum });
            }
        });
        let before = b.program.clone();
        let pool = constants::place(&mut b.program, Tier::Avx512, &[BUFFERS]);
        values::same(&before, &b.program, &pool, Tier::Avx512).expect("the constants");
        let is_load = |item: &&Item| matches!(item, Item::Inst(inst) if matches!(inst.args[1], Arg::Pool(..)));
        b.program.items.iter().filter(is_load).count()
    };
    assert_eq!([loads(false), loads(true)], [1, 4]);
}

/// Checks that a change of a program's homes or instructions is found.
fn finds_in_places(
    (mut program, tier): (MachineProgram, Tier),
    named: &str,
    homes_change: impl FnOnce(&MachineProgram, &mut Homes),
    change: impl FnOnce(&mut places::Record),
) {
    dead::remove_dead(&mut program);
    coalesce::coalesce(&mut program);
    order::order(&mut program, tier);
    let pool = constants::place(&mut program, tier, &[BUFFERS]);
    let mut homes = allocate(&program, tier, BUFFERS);
    homes_change(&program, &mut homes);
    let code = encode::encode(&program, &homes, &pool, tier, (FrameFrom::Caller, SPILLS_AT)).expect("code");
    let frame = SPILLS_AT..SPILLS_AT + u64::from(homes.frame_bytes);
    let mut record = code.record;
    change(&mut record);
    let fault = places::hold(&program, &record, tier, BUFFERS, frame).expect_err(named);
    assert!(fault.contains(named), "{fault}");
}

fn finds_homes(named: &str, change: impl FnOnce(&MachineProgram, &mut Homes)) {
    finds_in_places((sums(), Tier::Avx2), named, change, |_| {});
}

fn finds_written(named: &str, change: impl FnOnce(&mut places::Record)) {
    finds_in_places((sums(), Tier::Avx2), named, |_, _| {}, change);
}

/// Gives the second of the vectors in places of a kind the place of the first.
fn join(homes: &mut Homes, program: &MachineProgram, is: fn(Home) -> bool) {
    let of = (0..homes.homes.len()).filter(|&n| program.classes[n] == Class::Vector && is(homes.homes[n]));
    let [first, second, ..] = of.collect::<Vec<_>>()[..] else { panic!("two places") };
    homes.homes[second] = homes.homes[first];
}

#[test]
fn faults_of_homes_are_found() {
    finds_homes("holds", |p, homes| join(homes, p, |home| matches!(home, Home::Register(_))));
    finds_homes("holds", |p, homes| join(homes, p, |home| matches!(home, Home::Frame(_))));
    finds_homes("behind the frame", |_, homes| homes.frame_bytes -= 64);
    // This slot reaches into the next one.
    finds_homes("holds", |_, homes| {
        homes.frame_bytes += 64;
        let slot = homes.homes.iter_mut().find_map(|home| if let Home::Frame(at) = home { Some(at) } else { None });
        *slot.expect("a slot") += 48;
    });
    // The loop's constant gets the register of a temporary of the loop.
    let overwrite = |program: &MachineProgram, homes: &mut Homes| {
        let constant = program.items[find(program, Opcode::Vpbroadcastd, 0)].def().expect("a load").0;
        let loaded = program.items[find(program, Opcode::Vmovdqu32, 0)].def().expect("a load").0;
        homes.homes[constant.0 as usize] = homes.of(loaded);
    };
    finds_in_places((maxima(), Tier::Avx512), "holds", overwrite, |_| {});
    finds_homes("was not saved", |program, homes| {
        homes.general = 0;
        for (home, class) in homes.homes.iter_mut().zip(&program.classes) {
            if (*home, *class) == (Home::Register(1), Class::General) {
                *home = Home::Register(9);
            }
        }
    });
}

fn is_reload(i: &Instruction) -> bool {
    i.op_count() == 2 && i.op1_kind() == OpKind::Memory && i.memory_base() == Register::RSI
}

fn is_spill(i: &Instruction) -> bool {
    i.op_count() == 2 && i.op0_kind() == OpKind::Memory && i.memory_base() == Register::RSI
}

fn remove(record: &mut places::Record, at: usize) {
    record.written.remove(at);
    record.starts.iter_mut().filter(|start| **start > at).for_each(|start| *start -= 1);
}

fn nth(record: &mut places::Record, n: usize, is: impl Fn(&Instruction) -> bool) -> &mut Instruction {
    record.written.iter_mut().filter(|i| is(i)).nth(n).expect("the instruction")
}

/// The place of the last reload of a register that was not just stored: one that was still holds its value.
fn last_reload(record: &places::Record) -> usize {
    let is_needed = |at: &usize| is_reload(&record.written[*at]) && !is_spill(&record.written[at - 1]);
    (1..record.written.len()).rev().find(is_needed).expect("a reload")
}

#[test]
fn faults_of_the_frame_are_found() {
    finds_written("holds", |record| remove(record, last_reload(record)));
    finds_written("holds", |record| {
        let at = record.written.iter().rposition(is_spill).expect("a spill");
        remove(record, at);
    });
    finds_written("holds", |record| {
        let at = last_reload(record);
        let reload = &mut record.written[at];
        reload.set_memory_displacement64(reload.memory_displacement64() - 64);
    });
    // The register is a free one, and one that holds another operand.
    for register in [Register::YMM13, Register::YMM0] {
        finds_written("holds", |record| {
            let at = last_reload(record);
            record.written[at].set_op0_register(register);
        });
    }
}

#[test]
fn faults_of_encoded_instructions_are_found() {
    let code = |opcode: Opcode| opcode.row().form(Tier::Avx2).expect("a form").code;
    let is_difference = |i: &Instruction| {
        let are_registers = i.op2_kind() == OpKind::Register && i.op1_register() != i.op2_register();
        i.code() == code(Opcode::Vsubps) && are_registers
    };
    finds_written("holds", |record| {
        let difference = nth(record, 0, is_difference);
        let [a, b] = [difference.op1_register(), difference.op2_register()];
        difference.set_op1_register(b);
        difference.set_op2_register(a);
    });
    finds_written("Vsubps", |record| nth(record, 0, is_difference).set_code(code(Opcode::Vaddps)));
    finds_written("holds", |record| {
        let sum = nth(record, 1, |i| i.code() == code(Opcode::Vfmadd231ps));
        sum.set_code(code(Opcode::Vfmadd213ps));
    });
    finds_written("holds", |record| {
        let is_store = |i: &Instruction| i.code() == code(Opcode::VmovdquYmmStore) && !is_spill(i);
        nth(record, 0, is_store).set_memory_base(Register::RAX);
    });
}

/// Adds an instruction before the last that is such, to its item.
fn insert(record: &mut places::Record, instruction: Instruction, before: impl Fn(&Instruction) -> bool) {
    let at = record.written.iter().rposition(before).expect("the instruction");
    record.written.insert(at, instruction);
    record.starts.iter_mut().filter(|start| **start > at).for_each(|start| *start += 1);
}

#[test]
fn faults_of_the_flags_are_found() {
    let code = |opcode: Opcode| opcode.row().form(Tier::Avx2).expect("a form").code;
    let is_jump = |i: &Instruction| i.code() == code(Opcode::Jne);
    let of = |record: &places::Record, opcode| *record.written.iter().find(|i| i.code() == code(opcode)).expect("one");
    // Between the count and the jump something else sets the flags, keeps them, or reads them.
    finds_written("flags that are not set last", |record| insert(record, of(record, Opcode::AddBy), is_jump));
    finds_written("2 instructions", |record| insert(record, of(record, Opcode::Mov), is_jump));
    finds_written("another use of the flags", |record| insert(record, of(record, Opcode::Jne), is_jump));
    finds_written("another use of the flags", |record| nth(record, 0, is_jump).set_code(code(Opcode::Jmp)));
    finds_written("another use of the flags", |record| {
        let (is_count, moves) = (code(Opcode::SubBy), code(Opcode::MovBy64));
        nth(record, 0, |i| i.code() == is_count).set_code(moves);
    });
    // A loop that all runs but the first find flags in.
    let mut b = Builder::new(Tier::Avx2);
    let counter = b.program.reg(Class::General);
    b.by(Opcode::MovBy64, counter, 100);
    let [head, end] = [(); 2].map(|()| b.program.label());
    b.program.items.extend([Item::Enter(0), Item::Label(head), Item::Jump(Opcode::Jne, end)]);
    b.by(Opcode::SubBy, counter, 1);
    b.program.items.extend([Item::Jump(Opcode::Jmp, head), Item::Leave, Item::Label(end)]);
    finds_in_places((b.program, Tier::Avx2), "flags that are not set last", |_, _| {}, |_| {});
}

#[test]
fn a_merging_mask_is_a_use() {
    let merges = |i: &Instruction| i.has_op_mask() && i.op0_kind() == OpKind::Register;
    let on_masks = |named, change: &dyn Fn(&mut places::Record)| {
        finds_in_places((sums_of_masks(), Tier::Avx512), named, |_, _| {}, change);
    };
    on_masks("holds", &|record| nth(record, 0, merges).set_op0_register(Register::ZMM9));
    on_masks("lanes outside", &|record| nth(record, 0, merges).set_zeroing_masking(true));
    on_masks("holds", &|record| {
        let mask = nth(record, 0, merges);
        mask.set_op_mask(if mask.op_mask() == Register::K1 { Register::K2 } else { Register::K1 });
    });
}
