use nn::gemm::*;
use std::time::Instant;
fn main(){
  for (m,n,k,ta,tb) in [(1024,1024,1024,false,false),(200,10000,200,false,false),(200,200,10000,false,true),(200,10000,200,true,false),(3000,256,50,false,false),(3000,50,256,false,true),(64,256,3000,true,false),(1024,512,128,false,false),(1024,128,512,false,true),(128,512,1024,true,false),(64,64,32,false,true),(64,32,64,false,false),(32,64,64,true,false)] {
    let a=vec![0.5f32;m*k]; let b=vec![0.25f32;k*n]; let mut c=vec![0f32;m*n];
    let ma= if ta {Mat::new(&a,k,m).t()} else {Mat::new(&a,m,k)}; let mb= if tb {Mat::new(&b,n,k).t()} else {Mat::new(&b,k,n)};
    let mut best=f64::MAX; let s=Instant::now(); while s.elapsed().as_millis()<600 { let t=Instant::now(); gemm(Into::Set,&mut c,ma,mb); best=best.min(t.elapsed().as_secs_f64()); }
    println!("{m}x{n}x{k} {ta} {tb}: {:.1} GF/s {:.3} ms", 2.0*(m*n*k) as f64/best/1e9, best*1e3);
  }
}
