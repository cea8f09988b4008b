#include "textflag.h"

// func addAVX2(sums *[semantic]int64, vector *[semantic]byte, scale int64)
//
// 16 of the 192 numbers at a time: their bytes become 64 bits wide, and the lower
// halves are multiplied with scale, signed.
//
// DI sums   SI vector   AX bytes done   Y8 scale four times
TEXT ·addAVX2(SB), NOSPLIT, $0-24
	MOVQ         sums+0(FP), DI
	MOVQ         vector+8(FP), SI
	VPBROADCASTQ scale+16(FP), Y8
	XORQ         AX, AX

loop:
	VPMOVSXBQ (SI)(AX*1), Y0
	VPMOVSXBQ 4(SI)(AX*1), Y1
	VPMOVSXBQ 8(SI)(AX*1), Y2
	VPMOVSXBQ 12(SI)(AX*1), Y3
	VPMULDQ   Y8, Y0, Y0
	VPMULDQ   Y8, Y1, Y1
	VPMULDQ   Y8, Y2, Y2
	VPMULDQ   Y8, Y3, Y3
	VPADDQ    (DI)(AX*8), Y0, Y0
	VPADDQ    32(DI)(AX*8), Y1, Y1
	VPADDQ    64(DI)(AX*8), Y2, Y2
	VPADDQ    96(DI)(AX*8), Y3, Y3
	VMOVDQU   Y0, (DI)(AX*8)
	VMOVDQU   Y1, 32(DI)(AX*8)
	VMOVDQU   Y2, 64(DI)(AX*8)
	VMOVDQU   Y3, 96(DI)(AX*8)
	ADDQ      $16, AX
	CMPQ      AX, $192
	JLT       loop
	VZEROUPPER
	RET
