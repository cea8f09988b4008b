#include "textflag.h"

// The kernels take four rows at a time, so that four streams of cache misses
// are under way and each load of q serves four rows. Where fewer are left, the
// last one stands in for those that lack; its results land past the end of out.
//
// SI q   DI base   DX ids   BX index of the last id   R8 bytes a row
// R9 row distance   CX shift   R10 out   R11 mask   AX offset
// R12 R13 R14 R15 rows

// ROW sets dst to the address of row ids[i], or of the last one.
#define ROW(i, dst) \
	MOVQ    $i, dst           \
	CMPQ    BX, dst           \
	CMOVQLT BX, dst           \
	MOVL    (DX)(dst*4), dst  \
	MOVQ    dst, AX           \
	SHRQ    CX, AX            \
	ANDQ    R11, dst          \
	IMULQ   R9, dst           \
	ADDQ    (DI)(AX*8), dst

#define ARGS \
	MOVQ  q+0(FP), SI          \
	MOVQ  base+8(FP), DI       \
	MOVQ  ids+16(FP), DX       \
	MOVQ  n+24(FP), BX         \
	DECQ  BX                   \
	MOVQ  blocks+32(FP), R8    \
	SHLQ  $6, R8               \
	MOVQ  rowBytes+40(FP), R9  \
	MOVQ  shift+48(FP), CX     \
	MOVQ  out+56(FP), R10      \
	MOVQ  $1, R11              \
	SHLQ  CX, R11              \
	DECQ  R11

// AHEAD asks for the next four rows: they lie scattered, and waiting for them
// is most of a walk.
#define AHEAD(loop, end) \
	CMPQ BX, $4                \
	JLT  end                   \
	ROW(4, R12)                \
	ROW(5, R13)                \
	ROW(6, R14)                \
	ROW(7, R15)                \
	XORQ AX, AX                \
loop:                              \
	PREFETCHT0 (R12)(AX*1)     \
	PREFETCHT0 (R13)(AX*1)     \
	PREFETCHT0 (R14)(AX*1)     \
	PREFETCHT0 (R15)(AX*1)     \
	ADDQ $64, AX               \
	CMPQ AX, R8                \
	JLT  loop                  \
end:

#define ROWS \
	ROW(0, R12) \
	ROW(1, R13) \
	ROW(2, R14) \
	ROW(3, R15) \
	XORQ AX, AX

// FOLD leaves in X0 the sums of Y0, Y1, Y2 and Y3.
#define FOLD \
	VPHADDD      Y1, Y0, Y0 \
	VPHADDD      Y3, Y2, Y2 \
	VPHADDD      Y2, Y0, Y0 \
	VEXTRACTI128 $1, Y0, X1 \
	VPADDD       X1, X0, X0

// HALF adds the upper half of z to its lower half.
#define HALF(z, y, yt) \
	VEXTRACTI64X4 $1, z, yt \
	VPADDD        yt, y, y

// STORE writes four results and goes on to the next four ids.
#define STORE(loop) \
	VMOVDQU X0, (R10) \
	ADDQ    $16, DX   \
	ADDQ    $16, R10  \
	SUBQ    $4, BX    \
	JGE     loop

// func gatherVNNI(q *uint8, base *unsafe.Pointer, ids *uint32, n, blocks, rowBytes, shift int, out *int32)
//
// Rows are the unsigned factor as they stand, q is made signed. A row is 128
// too large in every component, which adds 128 times the sum of q: Y15.
TEXT ·gatherVNNI(SB), NOSPLIT, $0-64
	ARGS
	MOVL         $0x80808080, AX
	VPBROADCASTD AX, Z30
	VPXORQ       Z4, Z4, Z4
	XORQ         AX, AX

sumv:
	VPXORQ   (SI)(AX*1), Z30, Z16
	VPDPBUSD Z16, Z30, Z4
	ADDQ     $64, AX
	CMPQ     AX, R8
	JLT      sumv
	HALF(Z4, Y4, Y5)
	VEXTRACTI128 $1, Y4, X5
	VPADDD       X5, X4, X4
	VPHADDD      X4, X4, X4
	VPHADDD      X4, X4, X15

fourv:
	AHEAD(aheadv, rowsv)
	ROWS
	VPXORQ Z0, Z0, Z0
	VPXORQ Z1, Z1, Z1
	VPXORQ Z2, Z2, Z2
	VPXORQ Z3, Z3, Z3

blockv:
	VPXORQ    (SI)(AX*1), Z30, Z16
	VMOVDQU64 (R12)(AX*1), Z17
	VMOVDQU64 (R13)(AX*1), Z18
	VMOVDQU64 (R14)(AX*1), Z19
	VMOVDQU64 (R15)(AX*1), Z20
	VPDPBUSD  Z16, Z17, Z0
	VPDPBUSD  Z16, Z18, Z1
	VPDPBUSD  Z16, Z19, Z2
	VPDPBUSD  Z16, Z20, Z3
	ADDQ      $64, AX
	CMPQ      AX, R8
	JLT       blockv
	HALF(Z0, Y0, Y4)
	HALF(Z1, Y1, Y5)
	HALF(Z2, Y2, Y6)
	HALF(Z3, Y3, Y7)
	FOLD
	VPSUBD X15, X0, X0
	STORE(fourv)
	VZEROUPPER
	RET

// func gatherBW(q *uint8, base *unsafe.Pointer, ids *uint32, n, blocks, rowBytes, shift int, out *int32)
TEXT ·gatherBW(SB), NOSPLIT, $0-64
	ARGS
	MOVL         $0x00800080, AX
	VPBROADCASTD AX, Z30

fourb:
	AHEAD(aheadb, rowsb)
	ROWS
	VPXORQ Z0, Z0, Z0
	VPXORQ Z1, Z1, Z1
	VPXORQ Z2, Z2, Z2
	VPXORQ Z3, Z3, Z3

blockb:
	VPMOVZXBW (SI)(AX*1), Z16
	VPMOVZXBW (R12)(AX*1), Z17
	VPMOVZXBW (R13)(AX*1), Z18
	VPMOVZXBW (R14)(AX*1), Z19
	VPMOVZXBW (R15)(AX*1), Z20
	VPSUBW    Z30, Z16, Z16
	VPSUBW    Z30, Z17, Z17
	VPSUBW    Z30, Z18, Z18
	VPSUBW    Z30, Z19, Z19
	VPSUBW    Z30, Z20, Z20
	VPMADDWD  Z16, Z17, Z17
	VPMADDWD  Z16, Z18, Z18
	VPMADDWD  Z16, Z19, Z19
	VPMADDWD  Z16, Z20, Z20
	VPADDD    Z17, Z0, Z0
	VPADDD    Z18, Z1, Z1
	VPADDD    Z19, Z2, Z2
	VPADDD    Z20, Z3, Z3
	ADDQ      $32, AX
	CMPQ      AX, R8
	JLT       blockb
	HALF(Z0, Y0, Y4)
	HALF(Z1, Y1, Y5)
	HALF(Z2, Y2, Y6)
	HALF(Z3, Y3, Y7)
	FOLD
	STORE(fourb)
	VZEROUPPER
	RET

// func gatherAVX2(q *uint8, base *unsafe.Pointer, ids *uint32, n, blocks, rowBytes, shift int, out *int32)
TEXT ·gatherAVX2(SB), NOSPLIT, $0-64
	ARGS
	MOVL         $0x00800080, AX
	MOVQ         AX, X15
	VPBROADCASTD X15, Y15

foura:
	AHEAD(aheada, rowsa)
	ROWS
	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1
	VPXOR Y2, Y2, Y2
	VPXOR Y3, Y3, Y3

blocka:
	VPMOVZXBW (SI)(AX*1), Y8
	VPMOVZXBW (R12)(AX*1), Y9
	VPMOVZXBW (R13)(AX*1), Y10
	VPMOVZXBW (R14)(AX*1), Y11
	VPMOVZXBW (R15)(AX*1), Y12
	VPSUBW    Y15, Y8, Y8
	VPSUBW    Y15, Y9, Y9
	VPSUBW    Y15, Y10, Y10
	VPSUBW    Y15, Y11, Y11
	VPSUBW    Y15, Y12, Y12
	VPMADDWD  Y8, Y9, Y9
	VPMADDWD  Y8, Y10, Y10
	VPMADDWD  Y8, Y11, Y11
	VPMADDWD  Y8, Y12, Y12
	VPADDD    Y9, Y0, Y0
	VPADDD    Y10, Y1, Y1
	VPADDD    Y11, Y2, Y2
	VPADDD    Y12, Y3, Y3
	ADDQ      $16, AX
	CMPQ      AX, R8
	JLT       blocka
	FOLD
	STORE(foura)
	VZEROUPPER
	RET

// func prefetch(p unsafe.Pointer)
TEXT ·prefetch(SB), NOSPLIT, $0-8
	MOVQ p+0(FP), AX
	PREFETCHT0 (AX)
	PREFETCHT0 64(AX)
	RET
