#include "textflag.h"

// Both kernels take four rows at a time, so that four streams of cache misses
// are under way and each load of q serves four rows. A row has two sums (even
// and odd registers) which are added in the same order in the loop of four and
// in the loop of one: a score does not depend on the row's neighbours.
//
// SI q   DI base   DX ids   BX n   R8 bytes a row   R9 row distance
// CX shift   R10 out   R11 mask   AX offset   R12 R13 R14 R15 rows

// ROW sets dst to the address of the row whose number stands at off(DX).
#define ROW(off, dst) \
	MOVL  off(DX), dst    \
	MOVQ  dst, AX         \
	SHRQ  CX, AX          \
	ANDQ  R11, dst        \
	IMULQ R9, dst         \
	ADDQ  (DI)(AX*8), dst

// NEXT asks for the first lines of a row of the next four; the hardware follows
// with the rest. Rows lie scattered, and waiting for them is most of a walk.
// Prefetching past the end of a short row does no harm.
#define NEXT(off, dst) \
	ROW(off, dst) \
	PREFETCHT0 (dst) \
	PREFETCHT0 64(dst) \
	PREFETCHT0 128(dst) \
	PREFETCHT0 192(dst) \
	PREFETCHT0 256(dst) \
	PREFETCHT0 320(dst) \
	PREFETCHT0 384(dst) \
	PREFETCHT0 448(dst)

#define ARGS \
	MOVQ  q+0(FP), SI          \
	MOVQ  base+8(FP), DI       \
	MOVQ  ids+16(FP), DX       \
	MOVQ  n+24(FP), BX         \
	MOVQ  blocks+32(FP), R8    \
	SHLQ  $6, R8               \
	MOVQ  rowBytes+40(FP), R9  \
	MOVQ  shift+48(FP), CX     \
	MOVQ  out+56(FP), R10      \
	MOVQ  $1, R11              \
	SHLQ  CX, R11              \
	DECQ  R11

// FOLD512 leaves in x the four partial sums of the pair (z, zb).
#define FOLD512(z, y, x, zb, yb, xb) \
	VADDPS        zb, z, z     \
	VEXTRACTF64X4 $1, z, yb    \
	VADDPS        yb, y, y     \
	VEXTRACTF128  $1, y, xb    \
	VADDPS        xb, x, x

#define FOLD256(y, x, yb, xb) \
	VADDPS       yb, y, y    \
	VEXTRACTF128 $1, y, xb   \
	VADDPS       xb, x, x

// func gatherAVX512(q *float32, base *unsafe.Pointer, ids *uint32, n, blocks, rowBytes, shift int, out *float32)
TEXT ·gatherAVX512(SB), NOSPLIT, $0-64
	ARGS

four512:
	CMPQ BX, $4
	JLT  one512
	CMPQ BX, $8
	JLT  rows512
	NEXT(16, R12)
	NEXT(20, R12)
	NEXT(24, R12)
	NEXT(28, R12)

rows512:
	ROW(0, R12)
	ROW(4, R13)
	ROW(8, R14)
	ROW(12, R15)
	VPXORQ Z0, Z0, Z0
	VPXORQ Z1, Z1, Z1
	VPXORQ Z2, Z2, Z2
	VPXORQ Z3, Z3, Z3
	VPXORQ Z4, Z4, Z4
	VPXORQ Z5, Z5, Z5
	VPXORQ Z6, Z6, Z6
	VPXORQ Z7, Z7, Z7
	XORQ   AX, AX
	SUBQ   $64, R8

pair4x512:
	CMPQ        AX, R8
	JGE         last4x512
	VMOVUPS     (SI)(AX*1), Z16
	VMOVUPS     64(SI)(AX*1), Z17
	VFMADD231PS (R12)(AX*1), Z16, Z0
	VFMADD231PS (R13)(AX*1), Z16, Z2
	VFMADD231PS (R14)(AX*1), Z16, Z4
	VFMADD231PS (R15)(AX*1), Z16, Z6
	VFMADD231PS 64(R12)(AX*1), Z17, Z1
	VFMADD231PS 64(R13)(AX*1), Z17, Z3
	VFMADD231PS 64(R14)(AX*1), Z17, Z5
	VFMADD231PS 64(R15)(AX*1), Z17, Z7
	ADDQ        $128, AX
	JMP         pair4x512

last4x512:
	JGT         fold4x512
	VMOVUPS     (SI)(AX*1), Z16
	VFMADD231PS (R12)(AX*1), Z16, Z0
	VFMADD231PS (R13)(AX*1), Z16, Z2
	VFMADD231PS (R14)(AX*1), Z16, Z4
	VFMADD231PS (R15)(AX*1), Z16, Z6

fold4x512:
	ADDQ $64, R8
	FOLD512(Z0, Y0, X0, Z1, Y1, X1)
	FOLD512(Z2, Y2, X2, Z3, Y3, X3)
	FOLD512(Z4, Y4, X4, Z5, Y5, X5)
	FOLD512(Z6, Y6, X6, Z7, Y7, X7)
	VHADDPS X2, X0, X0
	VHADDPS X6, X4, X4
	VHADDPS X4, X0, X0
	VMOVUPS X0, (R10)
	ADDQ    $16, DX
	ADDQ    $16, R10
	SUBQ    $4, BX
	JMP     four512

one512:
	TESTQ BX, BX
	JEQ   done512
	ROW(0, R12)
	VPXORQ Z0, Z0, Z0
	VPXORQ Z1, Z1, Z1
	XORQ   AX, AX
	SUBQ   $64, R8

pair1x512:
	CMPQ        AX, R8
	JGE         last1x512
	VMOVUPS     (SI)(AX*1), Z16
	VMOVUPS     64(SI)(AX*1), Z17
	VFMADD231PS (R12)(AX*1), Z16, Z0
	VFMADD231PS 64(R12)(AX*1), Z17, Z1
	ADDQ        $128, AX
	JMP         pair1x512

last1x512:
	JGT         fold1x512
	VMOVUPS     (SI)(AX*1), Z16
	VFMADD231PS (R12)(AX*1), Z16, Z0

fold1x512:
	ADDQ $64, R8
	FOLD512(Z0, Y0, X0, Z1, Y1, X1)
	VHADDPS X0, X0, X0
	VHADDPS X0, X0, X0
	VMOVSS  X0, (R10)
	ADDQ    $4, DX
	ADDQ    $4, R10
	DECQ    BX
	JMP     one512

done512:
	VZEROUPPER
	RET

// func gatherAVX2(q *float32, base *unsafe.Pointer, ids *uint32, n, blocks, rowBytes, shift int, out *float32)
TEXT ·gatherAVX2(SB), NOSPLIT, $0-64
	ARGS

four256:
	CMPQ BX, $4
	JLT  one256
	ROW(0, R12)
	ROW(4, R13)
	ROW(8, R14)
	ROW(12, R15)
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3
	VXORPS Y4, Y4, Y4
	VXORPS Y5, Y5, Y5
	VXORPS Y6, Y6, Y6
	VXORPS Y7, Y7, Y7
	XORQ   AX, AX

pair4x256:
	CMPQ        AX, R8
	JGE         fold4x256
	VMOVUPS     (SI)(AX*1), Y8
	VMOVUPS     32(SI)(AX*1), Y9
	VFMADD231PS (R12)(AX*1), Y8, Y0
	VFMADD231PS (R13)(AX*1), Y8, Y2
	VFMADD231PS (R14)(AX*1), Y8, Y4
	VFMADD231PS (R15)(AX*1), Y8, Y6
	VFMADD231PS 32(R12)(AX*1), Y9, Y1
	VFMADD231PS 32(R13)(AX*1), Y9, Y3
	VFMADD231PS 32(R14)(AX*1), Y9, Y5
	VFMADD231PS 32(R15)(AX*1), Y9, Y7
	ADDQ        $64, AX
	JMP         pair4x256

fold4x256:
	FOLD256(Y0, X0, Y1, X1)
	FOLD256(Y2, X2, Y3, X3)
	FOLD256(Y4, X4, Y5, X5)
	FOLD256(Y6, X6, Y7, X7)
	VHADDPS X2, X0, X0
	VHADDPS X6, X4, X4
	VHADDPS X4, X0, X0
	VMOVUPS X0, (R10)
	ADDQ    $16, DX
	ADDQ    $16, R10
	SUBQ    $4, BX
	JMP     four256

one256:
	TESTQ BX, BX
	JEQ   done256
	ROW(0, R12)
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	XORQ   AX, AX

pair1x256:
	CMPQ        AX, R8
	JGE         fold1x256
	VMOVUPS     (SI)(AX*1), Y8
	VMOVUPS     32(SI)(AX*1), Y9
	VFMADD231PS (R12)(AX*1), Y8, Y0
	VFMADD231PS 32(R12)(AX*1), Y9, Y1
	ADDQ        $64, AX
	JMP         pair1x256

fold1x256:
	FOLD256(Y0, X0, Y1, X1)
	VHADDPS X0, X0, X0
	VHADDPS X0, X0, X0
	VMOVSS  X0, (R10)
	ADDQ    $4, DX
	ADDQ    $4, R10
	DECQ    BX
	JMP     one256

done256:
	VZEROUPPER
	RET
