use nn::gemm::*;
use std::time::Instant;
fn main(){
  for (m,n,k,ta,tb) in [(6000,256,50,false,false),(3000,256,64,false,false),(3000,50,256,false,true),(50,256,3000,true,false),(64,256,3000,true,false),(200,10000,200,false,false),(200,200,10000,false,true),(200,10000,200,true,false),(1000,1000,150,false,false),(512,512,512,false,false)] {
    let a=vec![0.5f32;m*k]; let b=vec![0.25f32;k*n]; let mut c=vec![0f32;m*n];
    let ma= if ta {Mat::new(&a,k,m).t()} else {Mat::new(&a,m,k)}; let mb= if tb {Mat::new(&b,n,k).t()} else {Mat::new(&b,k,n)};
    let mut best=f64::MAX; for _ in 0..10 { let t=Instant::now(); gemm(Into::Set,&mut c,ma,mb); best=best.min(t.elapsed().as_secs_f64()); }
    println!("{m}x{n}x{k} {ta}{tb}: {:.1} GF/s", 2.0*(m*n*k) as f64/best/1e9);
  }
  for m in [1,4,10,12,16,32] { let (n,k)=(256,64); let a=vec![0.5f32;m*k]; let b=vec![0.25f32;k*n]; let mut c=vec![0f32;m*n];
    let mut p=Packed::default(); p.pack(Mat::new(&b,k,n)); 
    let mut best=f64::MAX; for _ in 0..10 { let t=Instant::now(); for _ in 0..250 {gemm_packed(Into::Add,&mut c,Mat::new(&a,m,k),&p);} best=best.min(t.elapsed().as_secs_f64()); }
    println!("packed {m}x{n}x{k}: {:.1} GF/s {:.2} us", 250.0*2.0*(m*n*k) as f64/best/1e9, best/250.0*1e6);
  }
}
