/*
 * regs.d - the registers of uregs[] on x86_64, as kernel/abi/dif.h numbers them.
 */
inline int R_R15 = 0;
inline int R_R14 = 1;
inline int R_R13 = 2;
inline int R_R12 = 3;
inline int R_R11 = 4;
inline int R_R10 = 5;
inline int R_R9 = 6;
inline int R_R8 = 7;
inline int R_RBP = 8;
inline int R_RDI = 9;
inline int R_RSI = 10;
inline int R_RDX = 11;
inline int R_RCX = 12;
inline int R_RBX = 13;
inline int R_RAX = 14;
inline int R_TRAPNO = 15;
inline int R_ERR = 16;
inline int R_RIP = 17;
inline int R_CS = 18;
inline int R_RFL = 19;
inline int R_RSP = 20;
inline int R_SS = 21;
inline int R_PC = R_RIP;
inline int R_SP = R_RSP;
inline int R_FP = R_RBP;
inline int R_PS = R_RFL;
inline int R_R0 = R_RAX;
inline int R_R1 = R_RDX;
