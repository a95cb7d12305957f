#include <cstdio>
struct S{const char*f;int l;};
#define C2(a,b) a##b
#define C(a,b) C2(a,b)
#define M3(k) static S C(s,k)={__func__,__LINE__}; static S*const C(p,k) __attribute__((section("tide_sites"),used))=&C(s,k);
#define M() M3(__COUNTER__)
inline void g(){ M(); }
template<class T> void h(){ M(); }
int main(){ M(); g(); h<int>(); }
