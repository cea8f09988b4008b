#include "textflag.h"

// SDOT adds to the four 32-bit sums of vd the dot products of four signed bytes
// each of vn and vm. The assembler has no name for it: A64, SDOT (vector),
// Vd.4S, Vn.16B, Vm.16B.
#define SDOT(vd, vn, vm) WORD $(0x4E809400 | (vm)<<16 | (vn)<<5 | (vd))

// func gatherSDOT(q *uint8, base *unsafe.Pointer, ids *uint32, n, blocks, rowBytes, shift int, out *int32)
//
// R0 q   R1 base   R2 ids   R3 n   R4 blocks   R5 row distance   R6 shift
// R7 out   R8 mask   R9 row   R10 q   R11 blocks left   R12 id   R13 next row
// V31 128 in every byte: taken from rows and q by exclusive or
TEXT ·gatherSDOT(SB), NOSPLIT, $0-64
	MOVD  q+0(FP), R0
	MOVD  base+8(FP), R1
	MOVD  ids+16(FP), R2
	MOVD  n+24(FP), R3
	MOVD  blocks+32(FP), R4
	MOVD  rowBytes+40(FP), R5
	MOVD  shift+48(FP), R6
	MOVD  out+56(FP), R7
	MOVD  $1, R8
	LSL   R6, R8, R8
	SUB   $1, R8, R8
	MOVD  $0x80, R9
	VDUP  R9, V31.B16

row:
	MOVWU.P 4(R2), R12
	LSR     R6, R12, R9
	MOVD    (R1)(R9<<3), R9
	AND     R8, R12, R12
	MUL     R5, R12, R12
	ADD     R12, R9, R9
	CMP     $1, R3
	BEQ     start
	MOVWU   (R2), R12
	LSR     R6, R12, R13
	MOVD    (R1)(R13<<3), R13
	AND     R8, R12, R12
	MUL     R5, R12, R12
	ADD     R12, R13, R13
	PRFM    (R13), PLDL1KEEP
	PRFM    64(R13), PLDL1KEEP
	PRFM    128(R13), PLDL1KEEP
	PRFM    192(R13), PLDL1KEEP
	PRFM    256(R13), PLDL1KEEP
	PRFM    320(R13), PLDL1KEEP

start:
	MOVD R0, R10
	MOVD R4, R11
	VEOR V0.B16, V0.B16, V0.B16
	VEOR V1.B16, V1.B16, V1.B16
	VEOR V2.B16, V2.B16, V2.B16
	VEOR V3.B16, V3.B16, V3.B16

block:
	VLD1.P 64(R10), [V4.B16, V5.B16, V6.B16, V7.B16]
	VLD1.P 64(R9), [V16.B16, V17.B16, V18.B16, V19.B16]
	VEOR   V31.B16, V4.B16, V4.B16
	VEOR   V31.B16, V5.B16, V5.B16
	VEOR   V31.B16, V6.B16, V6.B16
	VEOR   V31.B16, V7.B16, V7.B16
	VEOR   V31.B16, V16.B16, V16.B16
	VEOR   V31.B16, V17.B16, V17.B16
	VEOR   V31.B16, V18.B16, V18.B16
	VEOR   V31.B16, V19.B16, V19.B16
	SDOT(0, 4, 16)
	SDOT(1, 5, 17)
	SDOT(2, 6, 18)
	SDOT(3, 7, 19)
	SUB    $1, R11, R11
	CBNZ   R11, block
	VADD   V1.S4, V0.S4, V0.S4
	VADD   V3.S4, V2.S4, V2.S4
	VADD   V2.S4, V0.S4, V0.S4
	VADDV  V0.S4, V0
	VMOV   V0.S[0], R12
	MOVW.P R12, 4(R7)
	SUB    $1, R3, R3
	CBNZ   R3, row
	RET

// func prefetch(p unsafe.Pointer)
TEXT ·prefetch(SB), NOSPLIT, $0-8
	MOVD p+0(FP), R0
	PRFM (R0), PLDL1KEEP
	PRFM 64(R0), PLDL1KEEP
	RET
