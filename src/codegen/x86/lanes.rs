//! Lanes to and from registers: constants, loads and stores.

use super::machine::code::{Arg, Constant, Inst, Item, Reg, View, masked_load};
use super::machine::nontemporal;
use super::machine::table::Opcode;
use super::{ActiveLanes, Generator, Refused, Val, ValuePlace, Walk};
use crate::codegen::address::{Access, Base};
use crate::codegen::emit::{Memory, Numbers};
use crate::schedule::Machine;
use cranefold_ir::{BufId, BufferRole, DType, Scalar};

impl<'a> Memory<'a> for Generator<'a> {
    fn load(&mut self, _: &Walk<'a>, from: Access<Reg>) -> Result<Val, Refused> {
        let Access { dtype, pointer, offset_bytes: offset, lanes, .. } = from;
        let bytes = dtype.bytes();
        let Some((lanes, stride)) = lanes else { return Ok(self.broadcast_load(dtype, pointer, offset)) };
        if self.lines.edge.is_some() && (stride != 1 || lanes * bytes != self.tier.bytes()) {
            return Err(Refused("elements apart of which some are left out".into()));
        }
        let val = |place| Val { place, dtype, lanes: ActiveLanes::First(lanes), bytes };
        if stride != 1 {
            return Ok(val(ValuePlace::Reg(self.gather(bytes, lanes, pointer, offset, stride))));
        }
        if (lanes * bytes).is_power_of_two() {
            if let Some(mask) = self.lines.edge {
                return Ok(self.load_edge(mask, pointer, offset, val(ValuePlace::Mem(pointer, offset))));
            }
            return Ok(val(ValuePlace::Mem(pointer, offset)));
        }
        if !self.tier.is_512() {
            return Err(Refused(format!("{lanes} lanes of {dtype}")));
        }
        let to = self.vector();
        let mask = self.mask_of(0, lanes);
        let args = [self.full(to), Arg::Mem(pointer, offset)];
        self.emit(Inst::new(masked_load(bytes), &args).masked(mask, true));
        Ok(val(ValuePlace::Reg(to)))
    }

    fn store(&mut self, to: Access<Reg>, val: Val) -> Result<(), Refused> {
        let Access { dtype, pointer, offset_bytes: offset, lanes, .. } = to;
        let bytes = dtype.bytes();
        if self.lines.edge.is_some() {
            return Err(Refused("stores of which some are left out".into()));
        }
        let reg = self.reg(val);
        let is_past_caches = match to.base {
            Base::Buf(buf) => self.around.nest.buffers[buf.0 as usize].role == BufferRole::Nontemporal,
            Base::Acc(_) => false,
        };
        match lanes {
            Some((lanes, 1)) if is_past_caches && self.store_past_caches(reg, (pointer, offset), lanes * bytes) => {}
            None => self.store_bytes(reg, pointer, offset, bytes),
            Some((lanes, 1)) if (lanes * bytes).is_power_of_two() => {
                self.store_bytes(reg, pointer, offset, lanes * bytes);
            }
            Some((lanes, 1)) if self.tier.is_512() => {
                let mask = self.mask_of(0, lanes);
                let args = [Arg::Mem(pointer, offset), self.full(reg)];
                self.emit(Inst::new(masked_store(bytes), &args).masked(mask, false));
            }
            Some((lanes, stride)) => self.scatter(reg, bytes, lanes, pointer, offset, stride),
        }
        Ok(())
    }

    fn misaligned(&mut self, buf: BufId, at: (Reg, i32), (lanes, bytes): (u64, u64)) -> Result<Reg, Refused> {
        if lanes * bytes != Machine::LINE_BYTES {
            return Err(Refused(format!("lines of {lanes} elements of {bytes} bytes")));
        }
        self.place_in_line(buf, at, bytes)
    }

    fn prefetch(&mut self, (pointer, offset): (Reg, i32), far: bool) {
        let opcode = if far { Opcode::Prefetcht1 } else { Opcode::Prefetcht0 };
        self.emit(Inst::new(opcode, &[Arg::Mem(pointer, offset)]));
    }
}

impl Generator<'_> {
    /// A value in a register.
    pub(super) fn reg(&mut self, val: Val) -> Reg {
        match val.place {
            ValuePlace::Reg(reg) => reg,
            ValuePlace::Const(s) => self.constant_reg(s),
            ValuePlace::Mem(base, offset) => {
                let to = self.vector();
                self.load_bytes(to, base, offset, self.known_bytes(val));
                to
            }
        }
    }

    /// The register of a constant in all lanes. A truth value is a mask in AVX-512.
    pub(super) fn constant_reg(&mut self, s: Scalar) -> Reg {
        if s.dtype() == DType::Bool {
            let bits = 0u64.wrapping_sub(s.bits());
            return self.program.constant(match self.tier.is_512() {
                true => Constant::Mask(bits),
                false => Constant::Splat(bits, 8),
            });
        }
        self.splat(s.bits(), s.dtype().bytes())
    }

    /// The register with an element in all lanes.
    pub(super) fn splat(&mut self, bits: u64, bytes: u64) -> Reg {
        let bits = if bytes < 8 { bits & ((1 << (8 * bytes)) - 1) } else { bits };
        self.program.constant(Constant::Splat(bits, bytes as u8))
    }

    /// A register with these bytes.
    pub(super) fn bytes_constant(&mut self, bytes: Vec<u8>) -> Reg {
        self.program.constant(Constant::Bytes(bytes))
    }

    /// The mask of `lanes` lanes from `start` on.
    pub(super) fn mask_of(&mut self, start: u64, lanes: u64) -> Reg {
        let ones = if lanes >= 64 { u64::MAX } else { (1 << lanes) - 1 };
        self.program.constant(Constant::Mask(ones << start))
    }

    /// Bytes of a value's lanes in memory that are known.
    pub(super) fn known_bytes(&self, val: Val) -> u64 {
        match val.lanes {
            ActiveLanes::First(n) => n * val.bytes,
            ActiveLanes::Same => self.tier.bytes(),
        }
    }

    /// The value as an operand that may be memory: a register, or memory of just `bytes` bytes.
    pub(super) fn operand(&mut self, val: Val, bytes: u64) -> Arg {
        let view = self.tier.view_of(bytes);
        match val.place {
            ValuePlace::Mem(base, offset) if self.known_bytes(val) == bytes => Arg::Mem(base, offset),
            _ => Arg::Reg(self.reg(val), view),
        }
    }

    /// Loads exactly `bytes` bytes, a power of two.
    pub(super) fn load_bytes(&mut self, to: Reg, base: Reg, offset: i32, bytes: u64) {
        let memory = Arg::Mem(base, offset);
        let x = |reg| Arg::Reg(reg, View::Xmm);
        let inst = match bytes {
            64 => Inst::new(Opcode::Vmovdqu32, &[Arg::Reg(to, View::Zmm), memory]),
            32 => {
                let code = Opcode::VmovdquYmm;
                Inst::new(code, &[Arg::Reg(to, View::Ymm), memory])
            }
            16 => Inst::new(Opcode::VmovdquXmm, &[x(to), memory]),
            8 => Inst::new(Opcode::Vmovq, &[x(to), memory]),
            4 => Inst::new(Opcode::Vmovd, &[x(to), memory]),
            _ => {
                let zero = self.splat(0, 8);
                let code = insert_code(bytes);
                Inst::new(code, &[x(to), x(zero), memory, Arg::Imm(0)])
            }
        };
        self.emit(inst);
    }

    /// Loads an element into all lanes.
    pub(super) fn broadcast_load(&mut self, dtype: DType, base: Reg, offset: i32) -> Val {
        let bytes = dtype.bytes();
        let to = self.vector();
        let args = [self.full(to), Arg::Mem(base, offset)];
        let opcode = match bytes {
            1 => Opcode::Vpbroadcastb,
            2 => Opcode::Vpbroadcastw,
            4 => Opcode::Vpbroadcastd,
            _ => Opcode::Vpbroadcastq,
        };
        self.emit(Inst::new(opcode, &args));
        let val = Val { place: ValuePlace::Reg(to), dtype, lanes: ActiveLanes::Same, bytes };
        match dtype {
            // In memory, a truth value is a byte.
            DType::Bool => self.is_nonzero(Val { dtype: DType::U8, ..val }),
            _ => val,
        }
    }

    /// The value of lane 0 in all lanes.
    pub(super) fn broadcast(&mut self, val: Val) -> Val {
        if val.dtype == DType::Bool {
            return self.broadcast_truth(val);
        }
        let from = self.reg(val);
        let to = self.vector();
        let opcode = match val.bytes {
            1 => Opcode::Vpbroadcastb,
            2 => Opcode::Vpbroadcastw,
            4 => Opcode::Vpbroadcastd,
            _ => Opcode::Vpbroadcastq,
        };
        let args = [self.full(to), Arg::Reg(from, View::Xmm)];
        self.emit(Inst::new(opcode, &args));
        Val { place: ValuePlace::Reg(to), lanes: ActiveLanes::Same, ..val }
    }

    /// Says of the last instruction that it should stay in the order of memory.
    pub(super) fn stays_in_order(&mut self) {
        if let Some(Item::Inst(inst)) = self.program.items.last_mut() {
            inst.in_order = true;
        }
    }

    /// Loads strided elements one by one.
    fn gather(&mut self, bytes: u64, lanes: u64, base: Reg, offset: i32, stride: i64) -> Reg {
        let in_group = 16 / bytes;
        let mut whole = None;
        for group in 0..lanes.div_ceil(in_group) {
            let mut part = self.splat(0, 8);
            for lane in 0..in_group.min(lanes - group * in_group) {
                let distance = (group * in_group + lane) as i64 * stride * bytes as i64;
                let (base, offset) = self.near(base, i64::from(offset) + distance);
                let to = self.vector();
                let inst = match (bytes, lane) {
                    (4 | 8, 0) => {
                        let code = match bytes {
                            4 => Opcode::Vmovd,
                            _ => Opcode::Vmovq,
                        };
                        Inst::new(code, &[Arg::Reg(to, View::Xmm), Arg::Mem(base, offset)])
                    }
                    _ => {
                        let args = [
                            Arg::Reg(to, View::Xmm),
                            Arg::Reg(part, View::Xmm),
                            Arg::Mem(base, offset),
                            Arg::Imm(lane as i64),
                        ];
                        Inst::new(insert_code(bytes), &args)
                    }
                };
                self.emit(inst);
                self.stays_in_order();
                part = to;
            }
            whole = Some(match whole {
                None => part,
                Some(whole) => {
                    let to = self.vector();
                    let args = [self.full(to), self.full(whole), Arg::Reg(part, View::Xmm), Arg::Imm(group as i64)];
                    let code = Opcode::Vinserti128;
                    self.emit(Inst::new(code, &args));
                    to
                }
            });
        }
        whole.expect("a lane")
    }

    /// Stores elements to strided places one by one.
    fn scatter(&mut self, reg: Reg, bytes: u64, lanes: u64, base: Reg, offset: i32, stride: i64) {
        let in_group = 16 / bytes;
        for group in 0..lanes.div_ceil(in_group) {
            let part = self.group(reg, group);
            for lane in 0..in_group.min(lanes - group * in_group) {
                let distance = (group * in_group + lane) as i64 * stride * bytes as i64;
                let (base, offset) = self.near(base, i64::from(offset) + distance);
                let args = [Arg::Mem(base, offset), Arg::Reg(part, View::Xmm), Arg::Imm(lane as i64)];
                self.emit(Inst::new(extract_code(bytes), &args));
            }
        }
    }

    /// The `n`-th 16 bytes of a vector.
    pub(super) fn group(&mut self, reg: Reg, n: u64) -> Reg {
        if n == 0 {
            return reg;
        }
        let to = self.vector();
        let args = [Arg::Reg(to, View::Xmm), self.full(reg), Arg::Imm(n as i64)];
        let code = Opcode::Vextracti128;
        self.emit(Inst::new(code, &args));
        to
    }

    /// Stores a whole vector past the caches; false if that takes another store.
    fn store_past_caches(&mut self, reg: Reg, (base, offset): (Reg, i32), bytes: u64) -> bool {
        let Some(store) = nontemporal::of_bytes(bytes).filter(|_| i64::from(offset) % bytes as i64 == 0) else {
            return false;
        };
        self.emit(Inst::new(store.past, &[Arg::Mem(base, offset), Arg::Reg(reg, store.view)]));
        true
    }

    /// Stores exactly `bytes` bytes, a power of two.
    pub(super) fn store_bytes(&mut self, reg: Reg, base: Reg, offset: i32, bytes: u64) {
        let memory = Arg::Mem(base, offset);
        let x = Arg::Reg(reg, View::Xmm);
        let inst = match bytes {
            64 => Inst::new(Opcode::Vmovdqu32Store, &[memory, Arg::Reg(reg, View::Zmm)]),
            32 => {
                let code = Opcode::VmovdquYmmStore;
                Inst::new(code, &[memory, Arg::Reg(reg, View::Ymm)])
            }
            16 => Inst::new(Opcode::VmovdquXmmStore, &[memory, x]),
            8 => Inst::new(Opcode::VmovqStore, &[memory, x]),
            4 => Inst::new(Opcode::VmovdStore, &[memory, x]),
            _ => Inst::new(extract_code(bytes), &[memory, x, Arg::Imm(0)]),
        };
        self.emit(inst);
    }
}

/// The instruction that puts an element from memory into a lane.
fn insert_code(bytes: u64) -> Opcode {
    match bytes {
        1 => Opcode::Vpinsrb,
        2 => Opcode::Vpinsrw,
        4 => Opcode::Vpinsrd,
        _ => Opcode::Vpinsrq,
    }
}

/// The instruction that stores the element of a lane.
fn extract_code(bytes: u64) -> Opcode {
    match bytes {
        1 => Opcode::Vpextrb,
        2 => Opcode::Vpextrw,
        4 => Opcode::Vpextrd,
        _ => Opcode::Vpextrq,
    }
}

fn masked_store(bytes: u64) -> Opcode {
    match bytes {
        1 => Opcode::Vmovdqu8Store,
        2 => Opcode::Vmovdqu16Store,
        4 => Opcode::Vmovdqu32Store,
        _ => Opcode::Vmovdqu64Store,
    }
}
